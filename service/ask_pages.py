"""The routes of the pages: the form, a question's page and what changes on it, stop, and the token's form."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, get_args
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ..evaluation.traces import judge
from ..pages import as_html
from ..pages import question_page as pages
from ..pages.asked_question import AskedQuestion
from ..programs.program import MAX_QUESTION_CHARACTERS
from ..retrieval.serving.server_limits import Refused
from ..signatures import AnswerStyle
from .ask_api import client_of, event_stream, sent, sign_of_life
from .door import cookie_name, cookie_of
from .questions import Ended, Question, Service

_RECENT, _NOTE = 8, 2000


def page_routes(service: Service, *, shows_recent: bool) -> APIRouter:
    """Return the routes of the pages; without scripts they read and ask as well.

    Args:
        service: what answers.
        shows_recent: whether the Ask page lists questions that were asked: not where several people may ask.
    """
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    def asked_lately() -> list[AskedQuestion]:
        return service.kept.recent(_RECENT) if shows_recent else []

    @routes.get("/")
    def ask_page() -> str:
        return pages.ask_page(service.offered, asked_lately())

    @routes.get("/api")
    async def api(request: Request) -> str:
        return as_html("api.html", description=request.app.openapi())

    @routes.post("/questions")
    async def ask(request: Request) -> Response:
        form = await _form(request)
        question, style = form.get("question", "").strip(), form.get("answer_style", "short")
        try:
            _check(question, style)
            taken = service.ask(
                question,
                client=client_of(request),
                program=form.get("program"),
                answer_style=style,  # type: ignore[arg-type]  # one of them: just checked
                patience=service.limits.patience,
            )
        except Refused as refused:  # what was written stays, to be sent again
            written = {"question": question, "program": form.get("program", ""), "answer_style": style}
            page = pages.ask_page(service.offered, (), str(refused), **written)
            return HTMLResponse(page, refused.status, refused.headers)
        return RedirectResponse(f"/questions/{taken.asked.id}", 303)

    @routes.get("/questions/{id}")
    async def question_page(id: str) -> str:
        found = _found(service, id)
        if not isinstance(found, Question):
            return pages.question_page(found, service.names)
        with found.following():  # a page without scripts follows by being loaded again
            events = f"/questions/{id}/events?after={found.heard}"
            return pages.question_page(found.now(), service.names, events)

    @routes.get("/questions/{id}/calls")
    def calls_page(id: str) -> str:
        return pages.calls_page(_ended(service, id), service.kept.steps(id))

    @routes.post("/questions/{id}/said")
    async def said(id: str, request: Request) -> Response:
        form, asked = await _form(request), _ended(service, id)
        asked.helpful, asked.note = form.get("helpful") == "yes", form.get("note", "")[:_NOTE]
        await run_sync(service.kept.keep, asked, None)
        await run_sync(judge, asked.trace, asked.helpful, asked.note)
        return RedirectResponse(f"/questions/{id}#said", 303)

    @routes.get("/questions/{id}/events")
    async def events(id: str, after: int = 0, last_event_id: Annotated[int | None, Header()] = None) -> Response:
        heard = after if last_event_id is None else last_event_id + 1
        return event_stream(_pieces(_found(service, id), max(heard, 0)))

    @routes.post("/questions/{id}/stop")
    async def stop(id: str) -> Response:
        found = _found(service, id)
        if isinstance(found, Question):
            await found.stopped()
        return RedirectResponse(f"/questions/{id}", 303)

    return routes


def login_routes(token: str | None) -> APIRouter:
    """Return the routes of the form that takes the token of a browser."""
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @routes.get("/login")
    async def login_page(then: str = "/") -> str:
        return pages.login_page(then)

    @routes.post("/login")
    async def login(request: Request) -> Response:
        form = await _form(request)
        given, then = form.get("token", ""), form.get("then", "")
        if token is None or cookie_of(given) != cookie_of(token):
            return HTMLResponse(pages.login_page(then, "This is not the server's token."), 401)
        entered = RedirectResponse("/" + then.lstrip("/\\"), 303)  # never to another server
        secure = request.url.scheme == "https"  # as a proxy in front says it
        entered.set_cookie(cookie_name(request.scope), cookie_of(token), httponly=True, samesite="lax", secure=secure)
        return entered

    return routes


async def _pieces(found: Question | AskedQuestion, after: int) -> AsyncIterator[bytes]:
    """Yield what changes on the page of a question, to its end."""
    if isinstance(found, AskedQuestion):
        yield sent(pages.progress(found), event="end")  # its page may have been drawn while it ran
        return
    async with aclosing(found.follow(after)) as events:
        async for told in events:
            if told:
                number, last = told[-1]
                kind = "end" if isinstance(last, Ended) else "piece"
                yield sent(pages.progress(found.now()), event=kind, id=str(number))
            else:
                yield sign_of_life()


def _ended(service: Service, id: str) -> AskedQuestion:
    found = _found(service, id)
    if isinstance(found, Question):
        raise Refused(404, "the question has not ended yet", "not_found")
    return found


def _found(service: Service, id: str) -> Question | AskedQuestion:
    found = service.find(id)
    if found is None:
        raise Refused(404, "there is no such question here; it may be one of another folder", "not_found")
    return found


def _check(question: str, style: str) -> None:
    """Refuse what a form asks.

    Raises:
        Refused: the question is empty or too long, or there is no such style.
    """
    problem = ""
    if not question:
        problem = "The question is empty: write one."
    elif len(question) > MAX_QUESTION_CHARACTERS:
        problem = f"The question has {len(question):,} characters; {MAX_QUESTION_CHARACTERS:,} are the most."
    elif style not in get_args(AnswerStyle):
        problem = f"There is no answer style {style[:40]!r}."
    if problem:
        raise Refused(400, problem, "invalid_request")


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form that a page sent; the last of a name counts."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    return {name: values[-1] for name, values in fields.items()}
