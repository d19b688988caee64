"""The routes of the pages of runs: which there are, and each page when it is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ..common.errors import QuestreeError
from ..evaluation import Tracking
from ..evaluation.comparison.plots import STYLE
from ..pages import as_html
from ..pages.shown_runs import ShownRuns
from ..pages.study import Study
from ..retrieval.serving.server_limits import Refused
from .tracked_store import TrackedStore


def run_routes(sources: Sequence[Path], tracking: Tracking | None = None, mlflow: str = "") -> APIRouter:
    """Return the routes.

    Args:
        sources: folders of runs, and capsules. Each is read when one of its pages is first asked for; nothing else is.
        tracking: where the runs are tracked that are listed beside them; None lists none.
        mlflow: the address of MLflow's pages, for links to runs and traces; empty if it is not known.
    """
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    store = TrackedStore(tracking, mlflow) if tracking else None
    reading = asyncio.Lock()

    @lru_cache(maxsize=4)
    def study(number: int) -> Study:
        source = sources[number - 1]
        return Study(source.resolve().stem, ShownRuns([source]), root="/", mlflow=mlflow)

    @routes.get("/runs")
    async def runs() -> str:
        named = [str(source) for source in sources]
        return as_html("runs.html", sources=named, tracked=await store.runs() if store else None, mlflow=mlflow)

    @routes.get("/runs/mlflow/{id}")
    @routes.get("/runs/{number:int}")
    async def first_page(request: Request) -> Response:
        return RedirectResponse(f"{request.url.path}/index.html", 307)

    @routes.get("/runs/mlflow/{id}/{name}")
    async def tracked_page(id: str, name: str) -> str:
        try:
            content = await store.page(id, name) if store else None
        except QuestreeError as error:
            raise Refused(404, str(error), "unreadable") from None
        return found(content)

    @routes.get("/runs/{number}/{name}")
    async def page(number: int, name: str) -> str:
        if not 1 <= number <= len(sources):
            return found(None)
        try:
            async with reading:  # who waits for another to read them holds no thread: questions search on these
                whole = await run_sync(study, number)
            return found(await run_sync(whole.page, name))
        except QuestreeError as error:
            raise Refused(404, str(error), "unreadable") from None

    def found(content: str | None) -> str:
        if content is None:
            raise Refused(404, "there is no such page", "not_found")
        return content

    @routes.get("/static/plots.css")
    async def plots() -> Response:
        return Response(STYLE, media_type="text/css")

    return routes
