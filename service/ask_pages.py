"""The routes of the pages: the form, a question's page and what changes on it, stop, and the token's form."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import Annotated, get_args
from urllib.parse import parse_qs, quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ..common.errors import CorpusError
from ..evaluation.traces import judge
from ..pages import as_html
from ..pages import question_page as pages
from ..pages.asked_question import AskedQuestion
from ..programs.program import MAX_QUESTION_CHARACTERS
from ..retrieval.documents.indexed import IndexedDocuments
from ..retrieval.serving.server_limits import Refused
from ..signatures import AnswerStyle
from .ask_api import SIGN_OF_LIFE, Client, Served, event_stream, sent
from .door import PDF_POLICY, cookie_name, cookie_of
from .pending_question import Ended, PendingQuestion

_RECENT, _NOTE = 8, 2000


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that a page sent; the last of a name counts."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    return {name: values[-1] for name, values in fields.items()}


async def found_question(id: str, service: Served) -> PendingQuestion | AskedQuestion:
    """Return the question of this id; refuse one that there is none of."""
    found = service.find(id)
    if found is None:
        raise Refused(404, "there is no such question here; it may be one of another folder", "not_found")
    return found


Form = Annotated[dict[str, str], Depends(form_of)]
Found = Annotated[PendingQuestion | AskedQuestion, Depends(found_question)]


async def ended_question(found: Found) -> AskedQuestion:
    """Return the question of this id; refuse one that has not ended."""
    if isinstance(found, PendingQuestion):
        raise Refused(404, "the question has not ended yet", "not_found")
    return found


EndedQuestion = Annotated[AskedQuestion, Depends(ended_question)]

routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
"""The pages; without scripts they read and ask as well."""


@routes.get("/")
def ask_page(request: Request, service: Served) -> str:
    """Return the Ask page; it lists what was asked lately, but not where several people may ask."""
    alone = request.app.state.token is None
    return pages.ask_page(service.offered, service.kept.recent(_RECENT) if alone else [])


@routes.get("/api")
async def api(request: Request) -> str:
    """Return the page of the API."""
    return as_html("api.html", description=request.app.openapi())


@routes.post("/questions")
async def ask(form: Form, service: Served, client: Client) -> Response:
    """Take the question of the Ask page, and lead to its page; what was written stays there if it is refused."""
    question, style = form.get("question", "").strip(), form.get("answer_style", "short")
    try:
        _check(question, style)
        taken = service.ask(
            question,
            client=client,
            program=form.get("program"),
            answer_style=style,  # type: ignore[arg-type]  # one of them: just checked
            patience=service.limits.patience,
            after=form.get("after", ""),
        )
    except Refused as refused:
        written = {"question": question, "program": form.get("program", ""), "answer_style": style}
        page = pages.ask_page(service.offered, (), str(refused), **written)
        return HTMLResponse(page, refused.status, refused.headers)
    return RedirectResponse(f"/questions/{taken.asked.id}", 303)


@routes.get("/questions/{id}")
async def question_page(id: str, found: Found, service: Served) -> str:
    """Return the page of a question, which follows what changes."""
    if not isinstance(found, PendingQuestion):
        return pages.question_page(found, service.names, "", service.documents, service.thread(found.after))
    with found.following():  # a page without scripts follows by being loaded again
        events, thread = f"/questions/{id}/events?after={len(found.events)}", service.thread(found.asked.after)
        return pages.question_page(found.now(), service.names, events, service.documents, thread)


@routes.get("/questions/{id}/calls")
def calls_page(asked: EndedQuestion, service: Served) -> str:
    """Return the page of everything that was asked for a question: each prompt and reply, each search."""
    return as_html("calls.html", asked=asked, steps=service.kept.steps(asked.id))


@routes.get("/questions/{id}/sources/{number}")
def source(asked: EndedQuestion, number: int, service: Served) -> Response:
    """Return the document that a reference comes from: a PDF to look at, others, which may hold scripts, to keep."""
    if not 1 <= number <= len(asked.references):
        raise Refused(404, "there is no such reference", "not_found")
    try:
        name, content = service.documents.content(asked.references[number - 1])
    except CorpusError as problem:
        raise Refused(404, str(problem), "not_found") from None
    is_pdf = content.startswith(b"%PDF-") and name.lower().endswith(".pdf")
    kind, how = ("application/pdf", "inline") if is_pdf else ("application/octet-stream", "attachment")
    named = quote(PurePosixPath(name).name, safe="")
    headers = {"Content-Disposition": f"{how}; filename*=UTF-8''{named}"}
    headers |= {"Content-Security-Policy": PDF_POLICY} if is_pdf else {}
    return Response(content, media_type=kind, headers=headers)


@routes.post("/questions/{id}/said")
async def said(asked: EndedQuestion, form: Form, service: Served) -> Response:
    """Keep what a user says of an answer."""
    asked.helpful, asked.note = form.get("helpful") == "yes", form.get("note", "")[:_NOTE]
    await run_sync(service.kept.keep, asked, None)
    await run_sync(judge, asked.trace, asked.helpful, asked.note)
    return RedirectResponse(f"/questions/{asked.id}#said", 303)


@routes.get("/questions/{id}/events")
async def events(
    id: str, service: Served, after: int = 0, last_event_id: Annotated[int | None, Header()] = None
) -> Response:
    """Return what changes on the page of a question, as events."""
    heard = after if last_event_id is None else last_event_id + 1
    return event_stream(_pieces(await found_question(id, service), max(heard, 0), service.documents))


@routes.post("/questions/{id}/stop")
async def stop(id: str, found: Found) -> Response:
    """Stop a question."""
    if isinstance(found, PendingQuestion):
        await found.stopped()
    return RedirectResponse(f"/questions/{id}", 303)


@routes.get("/login")
async def login_page(then: str = "/") -> str:
    """Return the form that takes the token of a browser."""
    return as_html("login.html", then=then, problem="")


@routes.post("/login")
async def login(form: Form, request: Request) -> Response:
    """Let a browser in that brings the token, and lead to the page that was wanted."""
    given, then, token = form.get("token", ""), form.get("then", ""), request.app.state.token
    if token is None or cookie_of(given) != cookie_of(token):
        return HTMLResponse(as_html("login.html", then=then, problem="This is not the server's token."), 401)
    entered = RedirectResponse("/" + then.lstrip("/\\"), 303)  # never to another server
    secure = request.url.scheme == "https"  # as a proxy in front says it
    entered.set_cookie(cookie_name(request.scope), cookie_of(token), httponly=True, samesite="lax", secure=secure)
    return entered


async def _pieces(
    found: PendingQuestion | AskedQuestion, after: int, documents: IndexedDocuments
) -> AsyncIterator[bytes]:
    """Yield what changes on the page of a question, to its end."""
    if isinstance(found, AskedQuestion):
        yield sent(pages.progress(found, documents), event="end")  # its page may have been drawn while it ran
        return
    async with aclosing(found.follow(after)) as events:
        async for told in events:
            if told:
                number, last = told[-1]
                kind = "end" if isinstance(last, Ended) else "piece"
                yield sent(pages.progress(found.now(), documents), event=kind, id=str(number))
            else:
                yield SIGN_OF_LIFE


def _check(question: str, style: str) -> None:
    """Refuse what a form asks.

    Raises:
        Refused: the question is empty or too long, or there is no such style.
    """
    if not question:
        problem = "The question is empty: write one."
    elif len(question) > MAX_QUESTION_CHARACTERS:
        problem = f"The question has {len(question):,} characters; {MAX_QUESTION_CHARACTERS:,} are the most."
    elif style not in get_args(AnswerStyle):
        problem = f"There is no answer style {style[:40]!r}."
    else:
        return
    raise Refused(400, problem, "invalid_request")
