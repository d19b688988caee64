"""``POST /ask``: a question for a program, answered as JSON, or told as server-sent events while it is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict, Field

from ..common.text import printable_json
from ..lm.progress import Event
from ..pages.asked_question import AskedQuestion, Citation
from ..programs.program import MAX_QUESTION_CHARACTERS
from ..retrieval.serving.server_limits import Refused
from ..signatures import AnswerStyle
from .pending_question import Ended, PendingQuestion
from .questions import Service

SIGN_OF_LIFE = format_sse_event(comment="")
"""It keeps a connection open and says nothing."""


class AskRequest(BaseModel):
    """A question for a program.

    Attributes:
        question: in your own words.
        program: by name; the first one that is served where it is left out.
        answer_style: the form of the answer.
        seconds: that the answer may take, its wait in the queue included.
        history: what was asked and answered before, in order; an LM call makes the question complete in itself then.
        after: the id of the question that it goes on from, in place of a history.
    """

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARACTERS)
    program: str | None = None
    answer_style: AnswerStyle = "short"
    seconds: float | None = Field(default=None, gt=0)
    history: list[str] = Field(default=[], max_length=1000)
    after: str = ""


class ErrorDetails(BaseModel):
    """Why a request is refused.

    Attributes:
        message: for a person.
        type: ``server_error`` from status 500 on, else ``invalid_request_error``.
        param: always null.
        code: for a program.
    """

    message: str
    type: str
    param: None
    code: str


class ErrorReply(BaseModel):
    """The reply to a request that is refused, in the form of OpenAI's (`Refused`)."""

    error: ErrorDetails


class AskReply(AskedQuestion):
    """A question with its answer, or with why there is none.

    Attributes:
        question: as it was asked.
        permalink: the address of its page.
        cited: what each mark of the final content stands for.
    """

    question: str
    permalink: str
    cited: list[Citation]

    @classmethod
    def to(cls, asked: AskedQuestion, request: Request) -> AskReply:
        """Return the reply to a request."""
        fields = dict(asked)
        return cls(**fields, question=asked.tree.question, permalink=permalink(asked, request), cited=asked.citations())


def permalink(asked: AskedQuestion, request: Request) -> str:
    """Return the address of a question's page."""
    return f"{str(request.base_url).rstrip('/')}/questions/{asked.id}"


async def service_of(request: Request) -> Service:
    """Return what answers the questions of the application."""
    service: Service = request.app.state.service
    return service


async def client_of(request: Request) -> str:
    """Return who asks, for the limit of each client: the address."""
    return "" if request.client is None else request.client.host


Served = Annotated[Service, Depends(service_of)]
Client = Annotated[str, Depends(client_of)]

routes = APIRouter(tags=["questions"])


@routes.post("/ask", response_model=AskReply, responses={200: {"content": {"text/event-stream": {}}}})
async def ask(
    asked: AskRequest, request: Request, service: Served, client: Client, accept: Annotated[str, Header()] = ""
) -> Response:
    """Ask a question.

    With `Accept: text/event-stream` the events come as they happen: `waiting` (with the place in the queue),
    `node_grown`, `node_changed`, `searching`, `call_begun`, `call_ended`, `written` (the text so far), and `done`
    with the whole reply. A client that leaves ends its question. A question without an answer is answered as well:
    `failure` says why.
    """
    question = service.ask(client=client, **dict(asked))
    if "text/event-stream" in accept:
        return event_stream(_events(question, request))
    await finished(question, request)
    return JSONResponse(AskReply.to(question.asked, request).model_dump(mode="json"))


@routes.get("/questions/{id}.json", response_model=AskReply)
async def asked_before(id: str, request: Request, service: Served) -> AskReply:
    """Return a question that was asked, as far as it is known."""
    found = service.find(id)
    if found is None:
        raise Refused(404, "there is no such question", "not_found")
    return AskReply.to(found.now() if isinstance(found, PendingQuestion) else found, request)


async def _events(question: PendingQuestion, request: Request) -> AsyncIterator[bytes]:
    async with aclosing(question.follow()) as events:
        async for told in events:
            yield b"".join(_as_event(number, event, request) for number, event in told) or SIGN_OF_LIFE


def _as_event(number: int, event: Event, request: Request) -> bytes:
    kind: str = event.kind  # type: ignore[attr-defined]  # every kind of event has one
    said = AskReply.to(event.asked, request) if isinstance(event, Ended) else event
    data = printable_json(said.model_dump_json())  # httpx, among others, ends a line at U+2028 and U+0085 too
    return sent(data, event=kind, id=str(number))


async def finished(question: PendingQuestion, request: Request) -> None:
    """Wait until a question has ended; if its client leaves before, so does the question end.

    Raises:
        Refused: if the client has left. Nobody reads it.
    """
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        group.start_soon(watch)
        async for _ in question.follow():
            pass
        group.cancel_scope.cancel()
    if not question.asked.finished:
        raise Refused(400, "the client has left", "broken_off")


def event_stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Return an answer of server-sent events."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def sent(data: str, *, event: str | None = None, id: str | None = None) -> bytes:
    """Return a server-sent event."""
    return format_sse_event(data_str=data, event=event, id=id)
