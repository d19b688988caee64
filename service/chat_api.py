"""The programs for any client of OpenAI's: ``/v1/chat/completions`` and ``/v1/models``. Each program is a model."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from ..common.text import printable
from ..lm.failure import Failure
from ..lm.progress import Event
from ..pages.asked_question import AskedQuestion
from ..programs.program import MAX_QUESTION_CHARACTERS
from ..programs.streams import NodeGrown, Written, new_line
from ..retrieval.serving.server_limits import Refused
from ..signatures import AnswerStyle
from .ask_api import SIGN_OF_LIFE, Client, Served, event_stream, finished, permalink, sent
from .pending_question import PendingQuestion, Restated
from .questions import Service

_TEXTS = ("text", "input_text", "output_text")


class Message(BaseModel):
    """A message of a chat, of any role and form: only texts are understood."""

    role: str
    content: Any = None

    @property
    def text(self) -> str:
        """Return its text, or the texts among its parts."""
        if isinstance(self.content, str):
            return self.content
        texts = (part.get("text") for part in self._parts)
        return "".join(text for text in texts if isinstance(text, str))

    @property
    def unread(self) -> str:
        """Return the kind of a part that is no text, such as an image; empty if there is none."""
        return next((kind for part in self._parts if (kind := str(part.get("type"))) not in _TEXTS), "")

    @property
    def _parts(self) -> list[dict[str, Any]]:
        return [part for part in self.content if isinstance(part, dict)] if isinstance(self.content, list) else []


class ResponseFormat(BaseModel):
    """The form of a reply: a program writes text, and no JSON."""

    type: Literal["text"]


class ChatRequest(BaseModel):
    """A request for a chat completion.

    Fields of OpenAI's that mean nothing here are ignored, unless they ask for another reply than a program gives.

    Attributes:
        model: a program's name.
        messages: the last one of the user is the question; after earlier ones of the user, an LM call makes it complete
            in itself first.
        stream: whether to send the reply in pieces; the reasoning comes first, a line for each node.
        n: replies that are wanted.
        response_format: the form of the reply.
        tool_choice, function_call: whether tools are called; none ever is.
        modalities: of the reply; a program writes text.
        logprobs: whether to tell how likely each token is; nobody knows.
        answer_style: the form of the answer (not OpenAI's: clients give it as an extra field).
    """

    model: str
    messages: list[Message] = Field(min_length=1, max_length=1000)
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    n: Literal[1] | None = None
    response_format: ResponseFormat | None = None
    tool_choice: Literal["none", "auto"] | None = None
    function_call: Literal["none", "auto"] | None = None
    modalities: list[Literal["text"]] | None = None
    logprobs: Literal[False] | None = None
    answer_style: AnswerStyle = "short"

    def question(self) -> str:
        """Return the question.

        Raises:
            Refused: there is none, it is too long, or more than text belongs to it.
        """
        last = next((message for message in reversed(self.messages) if message.role == "user"), Message(role="user"))
        if last.unread:
            raise Refused(400, f"messages: a program reads text, and no {last.unread[:40]!r}", "invalid_request")
        asked = last.text.strip()
        if not asked:
            raise Refused(400, "messages: the user asks nothing", "invalid_request")
        if len(asked) > MAX_QUESTION_CHARACTERS:
            most = f"{MAX_QUESTION_CHARACTERS:,} are the most"
            raise Refused(400, f"messages: the question has {len(asked):,} characters; {most}", "too_long")
        return asked

    def conversation(self) -> list[str]:
        """Return what user and assistant said before the question; nothing if the user said nothing before."""
        last = max(place for place, message in enumerate(self.messages) if message.role == "user")
        said = [one for one in self.messages[:last] if one.role in ("user", "assistant") and one.text.strip()]
        return [f"{one.role}: {one.text.strip()}" for one in said] if any(one.role == "user" for one in said) else []

    def ask(self, service: Service, client: str) -> PendingQuestion:
        """Ask the question.

        Raises:
            Refused: there is none, no such model, or no room, or follow-ups are not taken.
        """
        service.check_name(self.model)  # an empty one is none; where it is left out, it stands for the first program
        text, history = self.question(), self.conversation()
        return service.ask(text, client=client, program=self.model, answer_style=self.answer_style, history=history)


routes = APIRouter(prefix="/v1", tags=["for clients of OpenAI's"])


@routes.get("/models")
async def models(service: Served) -> dict[str, Any]:
    """List the programs."""
    return {"object": "list", "data": [_model(name) for name in service.names]}


@routes.get("/models/{name:path}")
async def model(name: str, service: Served) -> dict[str, Any]:
    """Return a program."""
    service.check_name(name)
    return _model(name)


@routes.post("/chat/completions")
async def complete(asked: ChatRequest, request: Request, service: Served, client: Client) -> Response:
    """Answer the last question of the user.

    The reply is the final content with its marks, `answer` the short answer and `answers` its items; each mark is an
    annotation (`url_citation`) whose address is the passage's own URL, or else that of the passage on the question's
    page. Where a passage of a document stands is told with it (`source`, `start`, `end`). `reasoning_content` tells
    how a follow-up was restated, and in a stream each node as a line.
    """
    question = asked.ask(service, client)
    if asked.stream:
        with_usage = bool((asked.stream_options or {}).get("include_usage"))
        return event_stream(_chunks(question, request, with_usage=with_usage))
    found = await answer_of(question, request)
    message: dict[str, Any] = {"role": "assistant", "refusal": None, "content": found.told}
    message |= {"answer": found.answer, "answers": found.answers, "annotations": citations_of(found, request)}
    if found.said:
        message["reasoning_content"] = str(Restated(question=found.tree.question))
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return JSONResponse(_head(found, "chat.completion") | {"choices": [choice], "usage": _usage(found)})


async def answer_of(question: PendingQuestion, request: Request) -> AskedQuestion:
    """Wait for the answer of a question.

    Raises:
        Refused: there is none.
    """
    await finished(question, request)
    if (refused := refusal_of(question.asked)) is not None:
        raise refused
    return question.asked


_BEGAN = int(time.time())


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _BEGAN, "owned_by": "questree"}


async def _chunks(question: PendingQuestion, request: Request, *, with_usage: bool) -> AsyncIterator[bytes]:
    """Yield the reply in pieces: a line for each node, the content as it is written, its annotations."""
    asked, told_lines, text = question.asked, set[str](), SentText()
    yield _chunk(asked, {"role": "assistant", "content": ""})
    async with aclosing(question.follow()) as events:
        async for told in events:
            lines = [str(event) for _, event in told if isinstance(event, Restated)]
            grown = [event for _, event in told if isinstance(event, NodeGrown)]
            lines += [line for event in grown if (line := new_line(event, told_lines))]
            for line in lines:
                yield _chunk(asked, {"reasoning_content": f"{printable(line)}\n"})
            if more := text.more(told):
                yield _chunk(asked, {"content": more})
            elif not lines:
                yield SIGN_OF_LIFE
    if (refused := refusal_of(asked)) is not None:
        yield sent(json.dumps(refused.body()))
    else:
        rest, before = text.last(asked.told)
        marks = citations_of(asked, request, before)
        yield _chunk(asked, {"content": rest, "answer": asked.answer, "answers": asked.answers, "annotations": marks})
        yield _chunk(asked, {}, finish_reason="stop")
        if with_usage:
            last = _head(asked, "chat.completion.chunk") | {"choices": [], "usage": _usage(asked)}
            yield sent(json.dumps(last))
    yield sent("[DONE]")


def _chunk(asked: AskedQuestion, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return sent(json.dumps(_head(asked, "chat.completion.chunk") | {"choices": [choice]}))


def _head(asked: AskedQuestion, kind: str) -> dict[str, Any]:
    about = {"id": f"chatcmpl-{asked.id}", "object": kind, "model": asked.program}
    return about | {"created": int(asked.asked_at.timestamp())}


def _usage(asked: AskedQuestion) -> dict[str, int]:
    given, taken = asked.spent.tokens_in, asked.spent.tokens_out
    return {"prompt_tokens": given, "completion_tokens": taken, "total_tokens": given + taken}


class SentText:
    """The text of an answer as far as a client was sent it, while it is written."""

    _text = ""

    def more(self, told: Sequence[tuple[int, Event]]) -> str:
        """Return what these events add to it; nothing of a text that was begun anew."""
        begun = len(self._text)
        for _, event in told:
            if isinstance(event, Written) and event.text.startswith(self._text):
                self._text = event.text
        return self._text[begun:]

    def last(self, whole: str) -> tuple[str, int]:
        """Return what is to be sent of the whole, and what stands before the whole: if it differs, it is sent anew."""
        if whole.startswith(self._text):
            return whole[len(self._text) :], 0
        return f"\n\n{whole}", len(self._text) + 2


def citations_of(asked: AskedQuestion, request: Request, before: int = 0) -> list[dict[str, Any]]:
    """Return what each mark of an answer cites, as OpenAI's annotations, with so many characters before the text."""
    address = permalink(asked, request)
    places = [(one, {"start_index": before + one.start, "end_index": before + one.end}) for one in asked.citations()]
    cited = []
    for one, place in places:
        passage = asked.references[one.number - 1]
        stands = passage.model_dump(include={"source", "start", "end"}, exclude_defaults=True)
        cited.append({**place, **stands, "title": one.title, "url": passage.url or f"{address}#cited-{one.number}"})
    return [{"type": "url_citation", "url_citation": one} for one in cited]


def refusal_of(asked: AskedQuestion) -> Refused | None:
    """Return the error of a question without an answer; None if there is one."""
    if asked.state == "answered":
        return None
    failure = asked.failure or Failure(cause="deadline", message="the question was stopped")
    status = {"question": 400, "deadline": 504}.get(failure.cause, 502)
    once = {"x-should-retry": "false"}  # OpenAI's clients ask again after any 5xx, and this was paid for
    return Refused(status, str(failure), failure.cause, once)
