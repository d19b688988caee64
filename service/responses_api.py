"""The programs for clients of OpenAI's newer API: ``/v1/responses``, answered whole or as a stream of events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import count
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ..pages.asked_question import AskedQuestion
from ..signatures import AnswerStyle
from .ask_api import SIGN_OF_LIFE, Client, Served, event_stream, sent
from .chat_api import ChatRequest, Message, ResponseFormat, SentText, answer_of, citations_of, refusal_of
from .pending_question import PendingQuestion


class Item(Message):
    """An item of the input: a message, or what an agent did between two, such as its reasoning, which nobody asked."""

    role: str = ""
    type: str | None = None


def _listed(given: Any) -> Any:
    """Return a question as the list that stands for it."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class ResponseText(BaseModel):
    """What is wanted of the text."""

    format: ResponseFormat | None = None


class ResponsesRequest(BaseModel):
    """A request for a response; fields of OpenAI's that mean nothing here are ignored, as in a `ChatRequest`.

    Attributes:
        model: a program's name.
        input: the question, or messages that end with it.
        stream: whether to send events.
        text: the form of the reply.
        tool_choice: whether tools are called; none ever is.
        previous_response_id, conversation, prompt: what a server has stored; this one stores nothing of the kind.
        background: whether to answer later.
        include: what else is wanted; log probabilities are not known.
        answer_style: the form of the answer (not OpenAI's).
    """

    model: str
    input: Annotated[list[Item], BeforeValidator(_listed), Field(min_length=1, max_length=1000)]
    stream: bool | None = False
    text: ResponseText | None = None
    tool_choice: Literal["none", "auto"] | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    prompt: Any = None
    background: Literal[False] | None = None
    include: list[str] | None = None
    answer_style: AnswerStyle = "short"

    @model_validator(mode="after")
    def _check(self) -> ResponsesRequest:
        referred = any(one.type == "item_reference" for one in self.input)
        if self.previous_response_id or self.conversation or self.prompt or referred:
            raise ValueError(
                "previous_response_id, conversation, prompt and item_reference stand for what was stored, and here "
                "nothing is: send the whole conversation as input"
            )
        if any("logprobs" in one for one in self.include or []):
            raise ValueError("include: no program knows log probabilities; leave them out")
        return self


routes = APIRouter(prefix="/v1", tags=["for clients of OpenAI's"])


@routes.post("/responses")
async def respond(asked: ResponsesRequest, request: Request, service: Served, client: Client) -> Response:
    """Answer the last question of the input; each mark is an annotation, as in a chat completion."""
    chat = ChatRequest(model=asked.model, messages=[*asked.input], answer_style=asked.answer_style)
    question = chat.ask(service, client)
    if asked.stream:
        return event_stream(_events(question, request))
    return JSONResponse(_response(await answer_of(question, request), request))


async def _events(question: PendingQuestion, request: Request) -> AsyncIterator[bytes]:
    """Yield the events of OpenAI's: one message of one text, which arrives as it is written."""
    asked, numbers, text = question.asked, count(), SentText()
    item: dict[str, Any] = {"output_index": 0, "item": _message(asked, "in_progress", [])}
    place: dict[str, Any] = {"item_id": item["item"]["id"], "output_index": 0, "content_index": 0}

    def event(kind: str, **fields: Any) -> bytes:
        return sent(json.dumps({"type": kind, "sequence_number": next(numbers), **fields}), event=kind)

    for kind in ("response.created", "response.in_progress"):
        yield event(kind, response=_response(asked, request, status="in_progress"))
    yield event("response.output_item.added", **item)
    yield event("response.content_part.added", part=_text("", []), **place)
    async with aclosing(question.follow()) as events:
        async for told in events:
            more = text.more(told)
            yield event("response.output_text.delta", delta=more, logprobs=[], **place) if more else SIGN_OF_LIFE
    if (refused := refusal_of(asked)) is not None:
        yield event("error", message=str(refused), code=refused.code, param=None)
        return
    whole = _response(asked, request)
    yield event("response.output_text.delta", delta=text.last(asked.told)[0], logprobs=[], **place)
    yield event("response.output_text.done", text=asked.told, logprobs=[], **place)
    yield event("response.content_part.done", part=whole["output"][0]["content"][0], **place)
    yield event("response.output_item.done", output_index=0, item=whole["output"][0])
    yield event("response.completed", response=whole)


def _text(text: str, marks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": marks, "logprobs": []}


def _message(asked: AskedQuestion, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "id": f"msg_{asked.id}", "role": "assistant", "status": status, "content": content}


def _response(asked: AskedQuestion, request: Request, status: str = "completed") -> dict[str, Any]:
    marks = [{"type": "url_citation", **one["url_citation"]} for one in citations_of(asked, request)]
    message = _message(asked, status, [_text(asked.told, marks)])
    given, taken = asked.spent.tokens_in, asked.spent.tokens_out
    usage = {"input_tokens": given, "output_tokens": taken, "total_tokens": given + taken}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        **{"id": f"resp_{asked.id}", "object": "response", "created_at": int(asked.asked_at.timestamp())},
        **{"model": asked.program, "status": status, "error": None, "incomplete_details": None},
        **{"answer": asked.answer, "answers": asked.answers},
        **{"instructions": None, "metadata": {}, "tools": [], "tool_choice": "none", "parallel_tool_calls": False},
        "output": [message] if status == "completed" else [],
        "usage": {**usage, **details} if status == "completed" else None,
    }
