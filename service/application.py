"""The application that serves programs: the pages, our own API, and the one that OpenAI's clients know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

from ..pages import STATIC
from ..retrieval.serving.connections import most_connections
from ..retrieval.serving.server_limits import Limits, Refused
from .ask_api import ask_routes
from .ask_pages import page_routes
from .chat_api import chat_routes
from .door import Door
from .prompt_pages import prompt_routes
from .questions import Service
from .run_pages import run_routes

_MOST_BYTES = 2**20
"""Of a request: a chat may bring what was said before, which nothing here reads."""


def create_app(service: Service, token: str | None = None, runs: Sequence[Path] = ()) -> FastAPI:
    """Return the application.

    Args:
        service: what answers.
        runs: folders of runs, and capsules, to be shown.
        token: that every request must bring, or have brought in the form at ``/login``; None serves this machine only.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    app = FastAPI(title="Questree's API", docs_url=None, redoc_url=None, lifespan=lifespan)
    most = most_connections()  # each follower of a question holds one: the queue of questions is the bound
    app.add_middleware(Door, limits=Limits(body=_MOST_BYTES, concurrency=most, waiting=0, token=token))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.include_router(run_routes(runs))
    app.include_router(prompt_routes(service))
    app.mount("/static", StaticFiles(directory=STATIC))
    app.include_router(ask_routes(service))
    app.include_router(chat_routes(service))
    app.include_router(page_routes(service, token))
    return app


async def _invalid(request: Request, error: Exception) -> Response:
    """Return the answer to a request that does not fit, in the form of all refusals here."""
    assert isinstance(error, RequestValidationError)
    fault = error.errors()[0]
    where = ".".join(map(str, fault["loc"])) or "body"
    return Refused(400, f"{where}: {fault['msg']}", "invalid_request").response()
