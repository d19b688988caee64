"""The page on which a person goes through a file of questions."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from ..common.errors import QuestreeError
from ..data.question_files import raw_rows
from ..data.review import answer_lines, decide, is_open
from ..metrics.quotes import quoted_sentences
from ..pages import STATIC, as_html, passage_marked
from ..retrieval.serving.server_limits import ServerLimits, limited_app
from .ask_pages import Form
from .door import PageAuth

routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def create_review(path: Path) -> FastAPI:
    """Return the application in which this machine's user reviews a file of questions."""
    app = limited_app("Questree's review", ServerLimits(), guard=PageAuth)
    app.state.file = path
    app.mount("/static", StaticFiles(directory=STATIC, follow_symlink=True))
    app.include_router(routes)
    return app


@routes.get("/")
def review_page(request: Request, n: int = 0) -> str:
    """Return the page of a question by its number; of the first that nobody has decided on, where none is given."""
    rows = raw_rows(request.app.state.file)
    return _page(request, rows, n if 0 < n <= len(rows) else _next_open(rows, 0))


@routes.post("/")
async def decided(request: Request, form: Form) -> Response:
    """Write a decision, and lead to the next question; what was written stays there if it cannot be taken."""
    path, number = request.app.state.file, int(form.get("n", "0"))
    words: dict[str, Any] = {"question": form.get("question", ""), "answers": form.get("answers", "").splitlines()}
    try:
        decide(path, form.get("id", ""), form.get("decision", "keep"), note=form.get("note", "").strip(), **words)
    except QuestreeError as error:
        rows = raw_rows(path)
        shown = min(max(number, 1), len(rows))
        rows[shown - 1] |= words | {"note": form.get("note", "")}
        return HTMLResponse(_page(request, rows, shown, str(error)), 400)
    return RedirectResponse(f"/?n={_next_open(raw_rows(path), number)}", 303)


def _next_open(rows: list[dict[str, Any]], number: int) -> int:
    """Return the number of the next question that is open; where there is none, of the one that follows."""
    order: list[int] = [*range(number + 1, len(rows) + 1), *range(1, number + 1)]
    return ([one for one in order if is_open(rows[one - 1])] or order)[0]


def _page(request: Request, rows: list[dict[str, Any]], number: int, problem: str = "") -> str:
    row, listed = rows[number - 1], [defaultdict(str, one) for one in rows]
    shown: dict[str, Any] = {"row": listed[number - 1], "answers": "\n".join(answer_lines(row)), "problem": problem}
    counts = Counter(row.get("review", "open") for row in rows)
    shown |= {"steps": shown_steps(row), "file": request.app.state.file.name}
    return as_html("review.html", rows=listed, number=number, counts=counts, **shown)


def shown_steps(row: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return the steps of a row, each with its passage, in which the sentences of its quote are marked."""
    read = zip_longest(row.get("quoted_from") or [], row.get("quotes") or [], fillvalue="")
    passages = [passage_marked(text, [quoted_sentences(quote, text)]) for text, quote in read]
    steps = [defaultdict(str, one) for one in row.get("steps") or []]
    return list(zip_longest(steps, passages, fillvalue=defaultdict(str)))
