"""The application that serves programs: the pages, our own API, and the one that OpenAI's clients know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from ..evaluation import Tracking
from ..pages import STATIC
from ..retrieval.serving.server_limits import ServerLimits, guarded
from .ask_api import ErrorReply, ask_routes
from .ask_pages import login_routes, page_routes
from .chat_api import chat_routes
from .door import PageAuth
from .prompt_pages import prompt_routes
from .questions import Service
from .responses_api import responses_routes
from .run_pages import run_routes

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
        runs, tracking, mlflow: see `run_routes`.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    limits, refused = ServerLimits(token=token), {"default": {"model": ErrorReply, "description": "Any refusal"}}
    app = guarded("Questree's API", limits, guard=PageAuth, hint=_HINT, lifespan=lifespan, responses=refused)

    @app.get("/health", tags=["the server"])
    async def health() -> dict[str, str]:
        """Report that the server lives. This needs no token, and no turn."""
        return {"status": "ok"}

    app.include_router(run_routes(runs, tracking, mlflow))
    app.include_router(prompt_routes(service))
    app.mount("/static", StaticFiles(directory=STATIC, follow_symlink=True))
    app.include_router(ask_routes(service))
    app.include_router(chat_routes(service))
    app.include_router(responses_routes(service))
    app.include_router(page_routes(service, shows_recent=token is None))
    app.include_router(login_routes(token))
    return app
