"""The programs for clients of OpenAI's newer API: ``/v1/responses``, answered whole or as a stream of events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from ..pages.asked_question import AskedQuestion
from ..signatures import AnswerStyle
from .ask_api import client_of, event_stream, finished, refusals, sent, sign_of_life
from .chat_api import ChatRequest, Message, citations_of, refusal_of
from .questions import Question, Service


class ResponsesRequest(BaseModel):
    """A request for a response; fields of OpenAI's that mean nothing here are ignored.

    Attributes:
        model: a program's name.
        input: the question, or messages that end with it.
        stream: whether to send events.
        answer_style: the form of the answer (not OpenAI's).
    """

    model: str
    input: str | list[Message]
    stream: bool | None = False
    answer_style: AnswerStyle = "short"


def responses_routes(service: Service) -> APIRouter:
    """Return the route."""
    routes = APIRouter(prefix="/v1", tags=["for clients of OpenAI's"])

    @routes.post("/responses", responses=refusals(400, 404, 408, 413, 429, 502, 504))
    async def respond(asked: ResponsesRequest, request: Request) -> Response:
        """Answer the last question of the input; each mark is an annotation, as in a chat completion."""
        service.check_name(asked.model)
        said = [Message(role="user", content=asked.input)] if isinstance(asked.input, str) else asked.input
        chat = ChatRequest(model=asked.model, messages=said, answer_style=asked.answer_style)
        question = chat.ask(service, client_of(request))
        if asked.stream:
            return event_stream(_events(question, request))
        await finished(question, request)
        if (refused := refusal_of(question.asked)) is not None:
            raise refused
        return JSONResponse(_response(question.asked, request))

    return routes


async def _events(question: Question, request: Request) -> AsyncIterator[bytes]:
    yield _event(0, "response.created", response=_response(question.asked, request, status="in_progress"))
    async with aclosing(question.follow()) as events:
        async for _ in events:
            yield sign_of_life()
    asked = question.asked
    if (refused := refusal_of(asked)) is not None:
        yield _event(1, "error", message=str(refused), code=refused.code, param=None)
        return
    place = {"item_id": f"msg_{asked.id}", "output_index": 0, "content_index": 0}
    yield _event(1, "response.output_text.delta", delta=asked.told, **place)
    yield _event(2, "response.completed", response=_response(asked, request))


def _event(number: int, kind: str, **fields: Any) -> bytes:
    return sent(json.dumps({"type": kind, "sequence_number": number, **fields}), event=kind)


def _response(asked: AskedQuestion, request: Request, status: str = "completed") -> dict[str, Any]:
    marks = [{"type": "url_citation", **one["url_citation"]} for one in citations_of(asked, request)]
    text = {"type": "output_text", "text": asked.told, "annotations": marks, "logprobs": []}
    message = {"type": "message", "id": f"msg_{asked.id}", "role": "assistant", "status": status, "content": [text]}
    spent = asked.spent
    usage = {"input_tokens": spent.tokens_in, "output_tokens": spent.tokens_out}
    usage |= {"total_tokens": spent.tokens_in + spent.tokens_out}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        **{"id": f"resp_{asked.id}", "object": "response", "created_at": int(asked.asked_at.timestamp())},
        **{"model": asked.program, "status": status, "error": None, "incomplete_details": None, "answer": asked.answer},
        **{"instructions": None, "metadata": {}, "tools": [], "tool_choice": "none", "parallel_tool_calls": False},
        "output": [message] if status == "completed" else [],
        "usage": {**usage, **details} if status == "completed" else None,
    }
