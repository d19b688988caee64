"""The application that serves programs: the pages, our own API, and the one that OpenAI's clients know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from ..evaluation import Tracking
from ..pages import STATIC
from ..retrieval.serving.server_limits import ServerLimits, limited_app
from . import ask_api, ask_pages, chat_api, prompt_pages, responses_api, run_pages
from .door import PageAuth
from .questions import Service
from .run_pages import Runs

_HINT = (
    "; /ask takes a question, and from clients of OpenAI's /v1/chat/completions, with the models of /v1/models (their "
    "base_url ends with /v1); /api describes all"
)


def create_app(
    service: Service,
    token: str | None = None,
    runs: Sequence[Path] = (),
    tracking: Tracking | None = None,
    mlflow: str = "",
) -> FastAPI:
    """Return the application.

    Args:
        service: what answers.
        token: that every request must bring, or have brought in the form at ``/login``; None serves this machine only.
        runs, tracking, mlflow: see `Runs`.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    refused = {"default": {"model": ask_api.ErrorReply, "description": "Any refusal"}}
    how: dict[str, Any] = {"guard": PageAuth, "hint": _HINT, "lifespan": lifespan, "responses": refused}
    app = limited_app("Questree's API", ServerLimits(token=token), **how)

    @app.get("/health", tags=["the server"])
    async def health() -> dict[str, str]:
        """Report that the server lives. This needs no token, and no turn."""
        return {"status": "ok"}

    app.state.service, app.state.token, app.state.runs = service, token, Runs(runs, tracking, mlflow)
    app.mount("/static", StaticFiles(directory=STATIC, follow_symlink=True))
    for part in (run_pages, ask_api, chat_api, responses_api, ask_pages, prompt_pages):
        app.include_router(part.routes)
    return app
