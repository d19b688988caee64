"""The connection to an LM's server: a reply has a largest size, and ends with the time of its request.

DSPy's client bounds only each wait for the next bytes. It would read an endless reply for ever, or one of which a byte
comes now and then.

DSPy takes a word for the end of a reply that it does not know for "stop", also where the reply was cut or broke off. Of
an error, its client shows the message where OpenAI puts it, and nothing else. Others put it in other places:
Mistral, MLC and vLLM of 2025 beside the code, FastAPI under ``detail``, Gemini into a list. A prompt that is too long
could not be told from any other.

What DSPy asks through LiteLLM instead of its own client is bounded by its timeout alone.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import dspy

from ..common.forks import renew_in_forks
from .limits import time_left
from .spent import note_sent

transports: Any = import_module("dspy._vendor.lm15.transports")  # without the types that it claims to have

_CONNECTIONS = 512
LARGEST_REPLY = 8 << 20  # bytes: some two million tokens

_CUT = re.compile(rb'("finish_reason"\s*:\s*)"(?:model_length|max_tokens|MAX_TOKENS)"')  # Mistral, Anthropic, Gemini
_BROKEN = re.compile(rb'("finish_reason"\s*:\s*)"error"')  # Mistral, OpenRouter
_SECOND = re.compile(rb'"index"\s*:\s*1\b')
_SHOWN = 500  # characters of an error's body, if it has no message


def bound_replies(lm: dspy.BaseLM) -> None:
    """Make the client that DSPy makes for this LM, and for its copies, read within bounds."""
    if type(getattr(lm, "_engine_store", None)) is dict:
        with lm._engine_lock:
            if type(lm._engine_store) is dict:
                lm._engine_store = _Engines()


class _Engines(dict[Any, Any]):
    """DSPy's own engines of an LM, each with a transport of ours: no option of `dspy.LM` names one."""

    def __setitem__(self, key: Any, engine: Any) -> None:
        kind = BoundedAsyncTransport if hasattr(engine, "aclose") else BoundedTransport
        transport = kind(**engine.config.transport_kwargs())
        engine.__init__(replace(engine.config, transport=transport, timeouts=None), model_type=engine.model_type)
        super().__setitem__(key, engine)


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
        response._chunks = _read(_Body(response.status), response._chunks)
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

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_connections": _CONNECTIONS, **options})

    async def _send_request(self, *given: Any, **more: Any) -> None:
        """Send the request."""
        note_sent()
        await super()._send_request(*given, **more)

    async def _do_stream(self, request: Any) -> Any:
        """Send the request; return its response."""
        response = await super()._do_stream(request)
        response._chunks = _read_async(_Body(response.status), response._chunks)
        return response


class _Body:
    """What a server sends: of a largest size, and in OpenAI's words, by which DSPy reads it."""

    def __init__(self, status: int) -> None:
        self._is_whole, self._is_error, self._size, self._held = False, status >= 400, 0, list[bytes]()

    def add(self, piece: bytes) -> bytes:
        """Take a piece; return the lines that are whole now.

        Raises:
            ValueError: if the pieces are too many; whoever asked takes it for a fault of the server.
        """
        self._size += len(piece)
        if self._size > LARGEST_REPLY:
            raise ValueError(f"the reply is larger than {LARGEST_REPLY:,} bytes")
        self._held.append(piece)
        self._is_whole = self._is_whole or (piece.lstrip()[:1] == b"{" and not b"".join(self._held[:-1]).strip())
        if self._is_error or self._is_whole or b"\n" not in piece:
            return b""
        lines, end, rest = b"".join(self._held).rpartition(b"\n")
        self._held = [rest]
        return _with_known_ends(lines + end)

    def rest(self) -> bytes:
        """Return what is left at the end."""
        rest = b"".join(self._held)
        return _as_openai_says(rest) if self._is_error else _with_known_ends(_with_one_choice(rest))


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


def _with_one_choice(sent: bytes) -> bytes:
    """Return a reply with the first of its choices: DSPy would refuse several, though they are paid for."""
    if not _SECOND.search(sent):
        return sent
    with suppress(ValueError, RecursionError, TypeError, KeyError):  # DSPy says what is wrong with it
        held = json.loads(sent)
        return json.dumps({**held, "choices": held["choices"][:1]}).encode()
    return sent


def _with_known_ends(sent: bytes) -> bytes:
    """Return what was sent, with the words that DSPy knows for a reply that was cut or broke off.

    In the text of a reply a quotation mark has a backslash before it, so nothing is changed there.
    """
    return _BROKEN.sub(rb'\1"content_filter"', _CUT.sub(rb'\1"length"', sent))


def _as_openai_says(body: bytes) -> bytes:
    """Return an error's body with its message where OpenAI puts it; if there is none, the beginning of the body."""
    try:
        held = json.loads(body)
    except (ValueError, RecursionError):  # DSPy shows what is no JSON
        return body
    held = held[0] if isinstance(held, list) and held else held
    error = held.get("error") if isinstance(held, dict) else None
    if isinstance(error, str) and error:
        return body
    error = error if isinstance(error, dict) else held if isinstance(held, dict) else {}
    said = error.get("message") or error.get("detail") or body.decode(errors="replace").strip()[:_SHOWN]
    return json.dumps({"error": {**error, "message": said if isinstance(said, str) else json.dumps(said)}}).encode()
