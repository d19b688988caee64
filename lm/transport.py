"""The connection to an LM's server: it bounds the size of a reply, and ends when the request's time is over.

DSPy's client bounds only each wait for the next bytes. It would read for ever if a reply is endless, or if a byte of it
comes now and then.

Replies are translated into OpenAI's format. DSPy treats an unknown finish reason as "stop", even if the reply was cut
or broke off; discards a reply with an invalid token count; treats missing choices as an empty reply; and finds nothing
in a whole reply where it asked for a stream. It shows an error's message only where OpenAI puts it. Mistral, MLC and
vLLM of 2025 put it beside the code, FastAPI under ``detail``, Gemini into a list.

Requests that DSPy sends through LiteLLM, not its own client, are bounded by its timeout alone, and read by LiteLLM.
"""

from __future__ import annotations

import json
import re
import socket
from asyncio import events
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import dspy
from dspy.clients import execution
from dspy.clients.backend_selection import CLIENT_KEYS
from dspy.clients.engines.lm15_engine import timeouts_for

from ..common.forks import renew_in_forks
from .limits import time_left
from .models import is_served
from .replies import NATIVE, end_of
from .spent import counted, note_sent

transports: Any = import_module("dspy._vendor.lm15.transports")  # imported without its types
errors: Any = import_module("dspy._vendor.lm15.errors")

_CONNECTIONS = 512
_PLAIN = (str, int, float, type(None))  # DSPy compares other options of a client by identity
LARGEST_BODY = 8 << 20  # bytes: some two million tokens

_STREAMED = re.compile(rb'"stream"\s*:\s*true')  # in a message, the quotation marks have backslashes
_PIECE = 8192  # characters: DSPy reads no longer line of a stream than 64 KB
_SHOWN = 500  # characters of an error's body, if it has no message


def use_our_connection(lm: dspy.BaseLM, options: Mapping[str, Any]) -> None:
    """Give an LM and its copies the client that DSPy would make for their next request, but with our connection.

    No option of `dspy.LM` names a connection. The client stands where DSPy looks for it, among those of the LM.

    Args:
        lm: the LM that is asked next.
        options: of the request.
    """
    clients: Any = getattr(lm, "_engine_store", None)
    if clients is None or not is_served(lm):
        return
    named = {name: value for name, value in {**lm.kwargs, **options}.items() if name in CLIENT_KEYS}
    others = sorted((name, value) for name, value in named.items() if name != "timeout")
    about = tuple((name, value if isinstance(value, _PLAIN) else id(value)) for name, value in others)
    with suppress(Exception):  # DSPy itself reports what is wrong with the request
        for loop in {None, events._get_running_loop()}:
            if not _is_ours(clients.get((loop, lm.model, lm.model_type, timeouts_for(named.get("timeout")), about))):
                _add_client(lm, named, BoundedAsyncTransport if loop else BoundedTransport)


def _add_client(lm: Any, options: dict[str, Any], kind: Any) -> None:
    """Let DSPy make a client for a copy, and give the LM one like it, but with our connection."""
    copy = lm.copy(_engine_store={})
    copy.kwargs = options
    execution._select_engine(copy, execution.prepare(copy, "?", None, {}), kind is BoundedAsyncTransport)
    with lm._engine_lock:
        lm._reap_closed_loops()
        for key, made in copy._engine_store.items():
            if not _is_ours(lm._engine_store.get(key)):
                connection = kind(max_connections=_CONNECTIONS, **made.config.transport_kwargs())
                config = replace(made.config, transport=connection, timeouts=None)
                lm._engine_store[key] = type(made)(config, model_type=made.model_type)


def _is_ours(client: Any) -> bool:
    return client is not None and client.config.transport is not None


class BoundedTransport(transports.StdlibTransport):
    """The transport of DSPy's own client, within bounds."""

    _pool: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        renew_in_forks(self)

    def renew(self) -> None:
        """Forget the connections of another process."""
        self._pool = type(self._pool)(self.max_connections)

    def stream(self, request: Any) -> Any:
        """Send the request; return its response."""
        response = super().stream(request)
        response._chunks = _read(_Body(request, response), response._chunks)
        return response

    def _open(self, *given: Any, connect_timeout: float, **more: Any) -> Any:
        """Open a connection whose waits end with the time of the request."""
        connection = super()._open(*given, connect_timeout=_in_time(connect_timeout), **more)
        connection.sock = _TimedSocket(connection.sock)
        return connection

    def _send_request(self, *given: Any, **more: Any) -> None:
        """Send the request."""
        note_sent()
        super()._send_request(*given, **more)


class _TimedSocket:
    """A socket whose waits end with the time of the request that uses it."""

    def __init__(self, held: socket.socket) -> None:
        self._held, self._seconds = held, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)

    def settimeout(self, seconds: float) -> None:
        """Set the longest wait."""
        self._seconds = seconds
        self._held.settimeout(_in_time(seconds))

    def recv(self, size: int) -> bytes:
        """Wait for the next bytes.

        Raises:
            TimeoutError: if there is no time left, also where bytes come without a pause.
        """
        if time_left() <= 0:
            raise TimeoutError("the time of the request is over")
        self.settimeout(self._seconds)
        return self._held.recv(size)


def _in_time(seconds: float) -> float:
    return max(min(seconds, time_left()), 0.001)  # 0 would be no wait at all, which is another error


class BoundedAsyncTransport(transports.StdlibAsyncTransport):
    """The transport of DSPy's own client on an event loop, within bounds; a cancelled request closes its connection."""

    async def _send_request(self, *given: Any, **more: Any) -> None:
        """Send the request."""
        note_sent()
        await super()._send_request(*given, **more)

    async def _do_stream(self, request: Any) -> Any:
        """Send the request; return its response."""
        response = await super()._do_stream(request)
        response._chunks = _read_async(_Body(request, response), response._chunks)
        return response


class _Body:
    """The body of a server's reply, bounded in size and translated into OpenAI's format, which DSPy reads."""

    def __init__(self, request: Any, response: Any) -> None:
        self._response, self._is_error = response, response.status >= 400
        self._is_chat, self._is_streamed = "/chat/completions" in request.url, bool(_STREAMED.search(request.body))
        self._is_whole, self._is_begun, self._size, self._held = False, False, 0, list[bytes]()

    def add(self, piece: bytes) -> bytes:
        """Add a piece; return the lines that are whole now.

        Raises:
            ValueError: if the body is too large; the caller treats this as a fault of the server.
        """
        self._size += len(piece)
        if self._size > LARGEST_BODY:
            raise ValueError(f"the reply is larger than {LARGEST_BODY:,} bytes")
        self._held.append(piece)
        self._is_whole = self._is_whole or (piece.lstrip()[:1] == b"{" and not b"".join(self._held[:-1]).strip())
        if self._is_error or self._is_whole or b"\n" not in piece:
            return b""
        lines, end, rest = b"".join(self._held).rpartition(b"\n")
        self._held = [rest]
        return b"".join(map(self._line, (lines + end).splitlines(keepends=True)))

    def rest(self) -> bytes:
        """Return what is left at the end.

        Raises:
            ProviderError: if the server sent an error in place of a stream.
        """
        rest = b"".join(self._held)
        if self._is_error:
            return _as_openai_says(rest)
        if not self._is_whole:
            return self._line(rest)
        said = _object(rest)
        if said is None:
            return rest  # DSPy reports what is wrong with it
        if status := _status_within(said, self._is_chat):
            self._fail(status, said)
            return _as_openai_says(rest)
        said = _in_known_words(said)
        return _as_stream(said) if self._is_chat and self._is_streamed else json.dumps(said).encode()

    def _line(self, line: bytes) -> bytes:
        """Return a line of a stream; raise a `ProviderError` for an error, or for an end without a reply."""
        data = line.removeprefix(b"data:").strip()
        is_end = data == b"[DONE]"
        said = {} if is_end else _object(data)
        if not (self._is_chat and line.startswith(b"data:")) or said is None:
            return line
        if status := _status_within(said, is_end and not self._is_begun):
            self._fail(status, said)
        self._is_begun = self._is_begun or bool(said.get("choices"))
        return line if is_end else b"data: %s\n" % json.dumps(_in_known_words(said)).encode()

    def _fail(self, status: int, said: dict[str, Any]) -> None:
        self._response.status = status  # DSPy reads it at the end of a whole reply, at the start of a stream
        if self._is_streamed:
            raise errors.map_http_error(status, _error_of(said)["message"])


def _read(body: _Body, pieces: Any) -> Iterator[bytes]:
    with closing(pieces):
        for piece in pieces:
            yield body.add(piece)
    yield body.rest()


async def _read_async(body: _Body, pieces: Any) -> AsyncIterator[bytes]:
    async with aclosing(pieces):
        async for piece in pieces:
            yield body.add(piece)
    yield body.rest()


def _object(sent: bytes) -> dict[str, Any] | None:
    with suppress(ValueError, RecursionError):
        held = json.loads(sent)
        return held if isinstance(held, dict) else None
    return None


def _status_within(said: dict[str, Any], has_choices: bool) -> int | None:
    """Return the status of an error that came with status 200; None for a reply. Expected choices must be there."""
    error, choices = said.get("error"), said.get("choices")
    is_reply = isinstance(choices, list) and choices[:1] and isinstance(choices[0], dict)
    if not isinstance(error, dict) and said.get("object") != "error" and (is_reply or not has_choices):
        return None
    codes = [one.get(name) for one in (error, said) if isinstance(one, dict) for name in ("code", "status")]
    return next((int(str(code)[:3]) for code in codes if re.fullmatch(r"[45]\d\d(\d\d)?", str(code))), 500)


def _in_known_words(said: dict[str, Any]) -> dict[str, Any]:
    """Return a reply, or a piece of one, with a finish reason that DSPy knows and without invalid token counts.

    Only the first of several choices is kept: DSPy would refuse them all, though they are paid for.
    """
    choices = said.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        end = choices[0].get("finish_reason")
        known = {} if end is None else {"finish_reason": end_of(end), NATIVE: end}
        said = {**said, "choices": [{**choices[0], **known}]}
    return said if said.get("usage") is None else {**said, "usage": _counts(said["usage"])}


def _counts(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, dict):
        return None
    counts = {name: counted(value) if name.endswith("_tokens") else value for name, value in usage.items()}
    return counts | {name: _counts(value) for name, value in usage.items() if name.endswith("_details")}


def _as_stream(said: dict[str, Any]) -> bytes:
    """Return a whole reply as the stream that was asked for."""
    [choice] = said["choices"]
    message = choice.get("message") or {}
    thoughts, content = message.get("reasoning_content") or message.get("reasoning"), message.get("content")
    texts = [str(part.get("text") or "") for part in content] if isinstance(content, list) else [content]
    told = [("reasoning_content", thoughts or ""), *(("content", text or "") for text in texts)]
    deltas = [{name: text[at : at + _PIECE]} for name, text in told for at in range(0, len(text), _PIECE)]
    pieces = [{**said, "usage": None, "choices": [{"delta": delta}]} for delta in deltas]
    end = {**said, "choices": [{**choice, "message": None, "finish_reason": choice.get("finish_reason") or "stop"}]}
    return b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in [*pieces, end]) + b"data: [DONE]\n\n"


def _as_openai_says(body: bytes) -> bytes:
    """Return an error's body with its message where OpenAI puts it."""
    with suppress(ValueError, RecursionError):  # DSPy itself shows a body that is no JSON
        return json.dumps({"error": _error_of(json.loads(body))}).encode()
    return body


def _error_of(said: Any) -> dict[str, Any]:
    """Return a server's error with a message; if it has none, the message shows what was sent."""
    held = said[0] if isinstance(said, list) and said else said
    error = held.get("error") if isinstance(held, dict) else None
    error = {"message": error} if error and isinstance(error, str) else error if isinstance(error, dict) else held
    error = error if isinstance(error, dict) else {}
    message = error.get("message") or error.get("detail") or f"no reply: {json.dumps(said)[:_SHOWN]}"
    return {**error, "message": message if isinstance(message, str) else json.dumps(message)}
