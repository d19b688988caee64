"""The routes of the pages of runs: which there are, and each page when it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock

import anyio.to_thread
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from ..common.errors import QuestreeError
from ..evaluation.comparison.plots import STYLE
from ..pages import as_html
from ..pages.run_index import open_index
from ..pages.study import Study
from ..retrieval.serving.server_limits import Refused


def run_routes(sources: Sequence[Path]) -> APIRouter:
    """Return the routes.

    Args:
        sources: folders of runs, and capsules. Each is read when one of its pages is first asked for; nothing else is.
    """
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    reading = Lock()

    @lru_cache(maxsize=4)
    def study(number: int) -> Study:
        source = sources[number - 1]
        return Study(source.resolve().stem, open_index(source), root="/")

    def drawn(number: int, name: str) -> str | None:
        try:
            with reading:  # the cache alone lets the first visitors read the same runs all at once
                whole = study(number)
            return whole.page(name)
        except QuestreeError as error:
            raise Refused(404, str(error), "unreadable") from None

    @routes.get("/runs")
    async def runs() -> str:
        return as_html("runs.html", sources=[str(source) for source in sources])

    @routes.get("/runs/{number}/{name}")
    async def page(number: int, name: str) -> str:
        content = await anyio.to_thread.run_sync(drawn, number, name) if 1 <= number <= len(sources) else None
        if content is None:
            raise Refused(404, "there is no such page", "not_found")
        return content

    @routes.get("/static/plots.css")
    async def plots() -> Response:
        return Response(STYLE, media_type="text/css")

    return routes
