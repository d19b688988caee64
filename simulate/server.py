"""The simulated LM behind an OpenAI-compatible address, so that a client's real network path is exercised."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dspy.lm15 import LM15Error, Request, Response, request_from_openai_chat

from ..retrieval.serving.listener import running
from ..retrieval.serving.server_limits import Refused, ServerLimits, limited_app
from .engine import AsyncSimulatedEngine, SimulatedEngine
from .reply import pieces

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import Response as HttpResponse


_UNDERSTOOD = ("model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "n")
"""The fields of a chat completion request that mean something here; others are ignored."""


def request_of(body: Mapping[str, Any]) -> Request:
    """Return a chat completion request as an engine takes it.

    Raises:
        Refused: it is none that OpenAI would take, or asks for several replies.
    """
    fields = {name: body[name] for name in _UNDERSTOOD if body.get(name) is not None and (name, body[name]) != ("n", 1)}
    try:
        json.dumps(fields, ensure_ascii=False).encode()  # half of a character is none
        return request_from_openai_chat(fields)
    except (LM15Error, TypeError, ValueError) as error:
        raise Refused(400, str(error), "invalid_request") from error


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

    async def complete(body: dict[str, Any]) -> HttpResponse:
        if body.get("model") not in names:
            raise Refused(404, f"no model {body.get('model')!r} here; there is {names[0]!r}", "model_not_found")
        whole = chat_completion(await replies.complete(request_of(body)))
        if not body.get("stream"):
            return JSONResponse(whole)
        sent = chunks(whole, with_usage=bool((body.get("stream_options") or {}).get("include_usage")))
        events = (f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in (*sent, "[DONE]"))
        return StreamingResponse(events, media_type="text/event-stream")

    async def models() -> dict[str, Any]:
        rows = [{"id": name, "object": "model", "created": 0, "owned_by": "questree"} for name in names]
        return {"object": "list", "data": rows}

    async def health() -> dict[str, str]:
        return {"status": "ok", "model": names[1]}

    app = limited_app("Simulated LM", limits or ServerLimits(), openapi_url=None)
    app.add_api_route("/v1/chat/completions", complete, methods=["POST"], response_model=None)
    app.add_api_route("/v1/models", models)
    app.add_api_route("/health", health)
    return app


@contextmanager
def running_lm(engine: SimulatedEngine, *, limits: ServerLimits | None = None) -> Iterator[str]:
    """Run a server on a free loopback port, in a thread of this process; gives its ``api_base``.

    Raises:
        RuntimeError: if it does not come up.
    """
    with running(create_app(engine, limits=limits)) as address:
        yield f"{address}/v1"


def chat_completion(response: Response) -> dict[str, Any]:
    """Return a reply as a chat completion."""
    used, message = response.usage, {"role": "assistant", "content": response.text or ""}
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": response.model,
        "choices": [{"index": 0, "message": message, "finish_reason": response.finish_reason}],
        "usage": {
            "prompt_tokens": used.input_tokens,
            "completion_tokens": used.output_tokens,
            "total_tokens": used.total_tokens,
        },
    }


def chunks(whole: dict[str, Any], *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Yield a chat completion as OpenAI streams it: a word in each chunk, and at the end the usage if it is wanted."""
    same = {**whole, "object": "chat.completion.chunk"}
    usage, [choice] = same.pop("usage"), whole["choices"]
    deltas = [{"role": "assistant", "content": ""}, *({"content": one} for one in pieces(choice["message"]["content"]))]
    for delta, finish_reason in [*((delta, None) for delta in deltas), ({}, choice["finish_reason"])]:
        yield same | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}
    if with_usage:
        yield same | {"choices": [], "usage": usage}
