"""The simulated LM behind an OpenAI-compatible address, so that a client's real network path is exercised."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from dspy.lm15 import Config, Message, Request, Response
from pydantic import BaseModel, Field, model_validator

from ..retrieval.serving.listener import running as app_running
from ..retrieval.serving.listener import serve as serve_app
from ..retrieval.serving.server_limits import Refused, ServerLimits, guarded
from .engine import AsyncSimulatedEngine, SimulatedEngine
from .reply import pieces

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import Response as HttpResponse


class _Text(BaseModel):
    type: Literal["text"]
    text: str


class _Said(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Text]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class Completion(BaseModel):
    """A chat completion request, with the fields that mean something here; others are ignored."""

    model: str
    messages: list[_Said] = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    n: int = Field(default=1, ge=1, le=16)
    seed: int | None = None
    stream: bool = False
    stream_options: dict[str, bool] = {}

    @model_validator(mode="after")
    def _ends_with_the_user(self) -> Completion:
        if self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's")
        return self

    def request(self) -> Request:
        """Return the same as an engine takes it."""
        system = "\n".join(said.text for said in self.messages if said.role in ("system", "developer"))
        turns = [said for said in self.messages if said.role in ("user", "assistant")]
        config = Config(
            max_tokens=self.max_tokens or self.max_completion_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=self.seed,
        )
        messages = tuple(
            Message.user(turn.text) if turn.role == "user" else Message.assistant(turn.text) for turn in turns
        )
        return Request(model=self.model, messages=messages, system=system or None, config=config)


def create_app(engine: SimulatedEngine, *, limits: ServerLimits | None = None) -> FastAPI:
    """Return the application: ``/v1/chat/completions``, ``/v1/models``, ``/health``.

    The model is called ``simulated`` or ``recorded``, after the engine's mind; with its fingerprint behind it
    (``simulated-1a2b3c4d``) the name also tells two servers' replies apart in a client's cache.

    Args:
        engine: what replies.
        limits: of the server; the token is what a client gives as its key.
    """
    from starlette.responses import JSONResponse, StreamingResponse

    mind, replies = engine.mind, AsyncSimulatedEngine(engine)
    names = [mind.kind, f"{mind.kind}-{mind.fingerprint}"]

    async def complete(asked: Completion) -> HttpResponse:
        if asked.model not in names:
            raise Refused(404, f"no model {asked.model!r} here; there is {names[0]!r}", "model_not_found")
        responses = [await replies.complete(asked.request()) for _ in range(asked.n)]
        whole = chat_completion(asked.model, responses)
        if not asked.stream:
            return JSONResponse(whole)
        sent = chunks(whole, with_usage=asked.stream_options.get("include_usage", False))
        events = (f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in (*sent, "[DONE]"))
        return StreamingResponse(events, media_type="text/event-stream")

    async def models() -> dict[str, Any]:
        rows = [{"id": name, "object": "model", "created": 0, "owned_by": "questree"} for name in names]
        return {"object": "list", "data": rows}

    async def health() -> dict[str, str]:
        return {"status": "ok", "model": names[1]}

    app = guarded("Simulated LM", limits or ServerLimits(), openapi_url=None)
    app.add_api_route("/v1/chat/completions", complete, methods=["POST"], response_model=None)
    app.add_api_route("/v1/models", models)
    app.add_api_route("/health", health)
    return app


def serve(
    engine: SimulatedEngine,
    host: str = "127.0.0.1",
    port: int = 8321,
    *,
    limits: ServerLimits | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until interrupted, on loopback unless told otherwise.

    Args:
        engine: what replies.
        host, port: where; 0 takes a free port.
        limits: without a token, only loopback is served.
        ready: called with the address when the server listens at it.

    Raises:
        QuestreeError: the address is taken or not this machine's, or needs a token.
    """
    serve_app(create_app(engine, limits=limits), host, port, token=limits.token if limits else None, ready=ready)


@contextmanager
def running(engine: SimulatedEngine, *, limits: ServerLimits | None = None) -> Iterator[str]:
    """Run a server on a free loopback port, in a thread of this process; gives its ``api_base``.

    Raises:
        RuntimeError: if it does not come up.
    """
    with app_running(create_app(engine, limits=limits)) as address:
        yield f"{address}/v1"


def chat_completion(model: str, responses: list[Response]) -> dict[str, Any]:
    """Return the replies as one chat completion; the prompt's tokens are counted once, as OpenAI does."""
    tokens_in = responses[0].usage.input_tokens or 0
    tokens_out = sum(response.usage.output_tokens or 0 for response in responses)
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": response.text or ""},
            "finish_reason": response.finish_reason,
        }
        for index, response in enumerate(responses)
    ]
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out},
    }


def chunks(whole: dict[str, Any], *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Yield a chat completion as OpenAI streams it: a word in each chunk, and at the end the usage if it is wanted."""
    same = {**whole, "object": "chat.completion.chunk"}
    usage = same.pop("usage")

    def chunk(index: int, delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
        return same | {"choices": [{"index": index, "delta": delta, "finish_reason": finish_reason}]}

    for choice in whole["choices"]:
        yield chunk(choice["index"], {"role": "assistant", "content": ""})
        for piece in pieces(choice["message"]["content"]):
            yield chunk(choice["index"], {"content": piece})
        yield chunk(choice["index"], {}, choice["finish_reason"])
    if with_usage:
        yield same | {"choices": [], "usage": usage}
