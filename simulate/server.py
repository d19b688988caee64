"""The simulated LM behind an OpenAI-compatible address, so that a client's real network path is exercised."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from dspy.lm15 import Config, Message, Request, Response
from pydantic import BaseModel, Field, ValidationError

from .engine import AsyncSimulatedEngine, SimulatedEngine

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request as HttpRequest
    from starlette.responses import JSONResponse

BODY_LIMIT = 4 * 2**20  # bytes
CONCURRENCY = 32
WAITING = 256
START_SECONDS = 10.0


class RefusedError(Exception):
    """A request that is answered with an error in OpenAI's form."""

    def __init__(self, status: int, message: str, code: str):
        super().__init__(message)
        self.status, self.code = status, code


class _Text(BaseModel):
    type: Literal["text"]
    text: str


class _Said(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Text]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class _Asked(BaseModel):
    """The fields of a chat completion request that mean something here; others are ignored."""

    model: str
    messages: list[_Said] = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    n: int = Field(default=1, ge=1, le=16)
    seed: int | None = None
    stream: Literal[False] = False

    def request(self) -> Request:
        """The same, as an engine takes it."""
        system = "\n".join(said.text for said in self.messages if said.role in ("system", "developer"))
        turns = [said for said in self.messages if said.role in ("user", "assistant")]
        config = Config(
            max_tokens=self.max_tokens or self.max_completion_tokens, temperature=self.temperature, seed=self.seed
        )
        messages = tuple(
            Message.user(turn.text) if turn.role == "user" else Message.assistant(turn.text) for turn in turns
        )
        return Request(model=self.model, messages=messages, system=system or None, config=config)


def create_app(
    engine: SimulatedEngine,
    *,
    body_limit: int = BODY_LIMIT,
    concurrency: int = CONCURRENCY,
    waiting: int = WAITING,
) -> FastAPI:
    """The application: ``/v1/chat/completions``, ``/v1/models``, ``/health``.

    The model is called ``simulated`` or ``recorded``, after the engine's mind; with its fingerprint behind it
    (``simulated-1a2b3c4d``) the name also tells two servers' replies apart in a client's cache.

    Args:
        engine: what replies.
        body_limit: bytes; a longer request is refused (413).
        concurrency: replies in the making at one time.
        waiting: requests beyond these are refused (429).
    """
    from fastapi import FastAPI
    from starlette.responses import JSONResponse

    mind, replies = engine.mind, AsyncSimulatedEngine(engine)
    names = [mind.kind, f"{mind.kind}-{mind.fingerprint}"]
    queue = _Queue(concurrency, waiting)

    async def complete(http: HttpRequest) -> JSONResponse:
        try:
            asked = _understood(await _body(http, body_limit))
            if asked.model not in names:
                raise RefusedError(404, f"no model {asked.model!r} here; there is {names[0]!r}", "model_not_found")
            async with queue.turn():
                responses = [await replies.complete(asked.request()) for _ in range(asked.n)]
        except RefusedError as error:
            kind = "rate_limit_error" if error.status == 429 else "invalid_request_error"
            fault = {"message": str(error), "type": kind, "param": None, "code": error.code}
            return JSONResponse({"error": fault}, status_code=error.status)
        return JSONResponse(_completion(asked.model, responses))

    async def models(http: HttpRequest) -> JSONResponse:
        rows = [{"id": name, "object": "model", "created": 0, "owned_by": "questree"} for name in names]
        return JSONResponse({"object": "list", "data": rows})

    async def health(http: HttpRequest) -> JSONResponse:
        return JSONResponse({"status": "ok", "model": names[1]})

    app = FastAPI(title="Simulated LM", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_route("/v1/chat/completions", complete, methods=["POST"])
    app.add_route("/v1/models", models, methods=["GET"])
    app.add_route("/health", health, methods=["GET"])
    return app


def serve(engine: SimulatedEngine, host: str = "127.0.0.1", port: int = 8321, **limits: int) -> None:
    """Serve until interrupted, on loopback unless told otherwise; ``limits`` are those of `create_app`."""
    import uvicorn

    uvicorn.run(create_app(engine, **limits), host=host, port=port, log_level="warning")


@contextmanager
def running(engine: SimulatedEngine, **limits: int) -> Iterator[str]:
    """A server on a free loopback port, in a thread of this process; gives its ``api_base``.

    Raises:
        RuntimeError: if it does not come up.
    """
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(engine, **limits), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + START_SECONDS
        while not server.started:
            if time.monotonic() > deadline or not thread.is_alive():
                raise RuntimeError("the simulated LM's server did not start")
            time.sleep(0.005)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)
        listening.close()


class _Queue:
    """A bounded number of turns at one time, and of those that wait for one."""

    def __init__(self, concurrency: int, waiting: int):
        self._turns = asyncio.Semaphore(concurrency)
        self._most, self._here = concurrency + waiting, 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._here >= self._most:
            raise RefusedError(
                429, f"{self._here} requests are waiting already; try again later", "rate_limit_exceeded"
            )
        self._here += 1
        try:
            async with self._turns:
                yield
        finally:
            self._here -= 1


async def _body(http: HttpRequest, limit: int) -> bytes:
    body = b""
    async for chunk in http.stream():
        body += chunk
        if len(body) > limit:
            raise RefusedError(413, f"the request is longer than {limit} bytes", "request_too_large")
    return body


def _understood(body: bytes) -> _Asked:
    try:
        asked = _Asked.model_validate(json.loads(body))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "request"
        raise RefusedError(400, f"{where}: {fault['msg']}", "invalid_value") from None
    except ValueError as error:
        raise RefusedError(400, f"the body is not JSON: {error}", "invalid_json") from None
    if asked.messages[-1].role != "user":
        raise RefusedError(400, "messages: the last one must be the user's", "invalid_value")
    return asked


def _completion(model: str, responses: list[Response]) -> dict[str, Any]:
    """The replies as one chat completion; the prompt's tokens are counted once, as OpenAI does."""
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
