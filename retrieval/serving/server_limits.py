"""The limits of every server here: loopback unless there is a token, bounded bodies, bounded work at a time."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from ...common.errors import QuestreeError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_VARIABLE = "QUESTREE_TOKEN"
_SHORTEST_TOKEN = 16
_RETRY_AFTER = 1  # seconds
_HEALTH = "/health"


@dataclass(frozen=True)
class Limits:
    """How much a server takes on, and whom it answers.

    Attributes:
        body: the most bytes of a request; a longer one is refused (413).
        body_seconds: in which it must arrive (408).
        concurrency: how many requests are worked on at a time.
        waiting: how many more may wait for a turn; further ones are refused (503, with Retry-After).
        token: what a request must bring as ``Authorization: Bearer``, else it is refused (401); None asks for none, and
            answers only requests to this machine by its own name (403).
    """

    body: int = 4 * 2**20
    body_seconds: float = 30.0
    concurrency: int = 64
    waiting: int = 256
    token: str | None = field(default=None, repr=False)


class Refused(Exception):
    """A request that is answered with an error, in the form of OpenAI's.

    Args:
        status: of HTTP.
        message: for a person.
        code: for a program.
        retry: whether OpenAI's clients may send the request again by themselves, as they do after any status of 5xx.
        allowed: the methods that a 405 names.
    """

    def __init__(self, status: int, message: str, code: str, *, retry: bool = True, allowed: str = ""):
        super().__init__(message)
        self.status, self.code, self.retry, self.allowed = status, code, retry, allowed

    def response(self) -> Response:
        """Return the answer."""
        from starlette.responses import JSONResponse

        return JSONResponse(self.body(), status_code=self.status, headers=self.headers)

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the answer that belong to its status."""
        headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": str(_RETRY_AFTER)}}.get(self.status, {})
        headers |= {} if self.retry else {"x-should-retry": "false"}
        return headers | ({"Allow": self.allowed} if self.allowed else {})

    def body(self) -> dict[str, dict[str, str | None]]:
        """Return what the answer says."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.code}}


async def refuse_unrouted(request: Request, error: Exception) -> Response:
    """Refuse a request that no route takes, in the form of other refusals; handles Starlette's `HTTPException`.

    Raises:
        Refused: always.
    """
    from starlette.exceptions import HTTPException

    assert isinstance(error, HTTPException)
    code, allowed = HTTPStatus(error.status_code).name.lower(), (error.headers or {}).get("Allow", "")
    raise Refused(error.status_code, error.detail, code, allowed=allowed)


class Guard:
    """ASGI middleware that holds an application to its limits and answers the requests that are `Refused`.

    ``/health`` needs the token too, but no turn: a busy server says that it lives.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self.limits = app, limits
        self._turns = asyncio.Semaphore(limits.concurrency)
        self._here = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self.check_caller(scope)
            if scope["path"] == _HEALTH:
                await self._app(scope, receive, send)
                return
            async with self._turn(receive) as received:
                await self._app(scope, received, send)
        except Refused as refused:
            await self.refusal(refused, scope)(scope, receive, send)

    def refusal(self, refused: Refused, scope: Scope) -> Response:
        """Return the answer to a request that is refused."""
        return refused.response()

    def check_caller(self, scope: Scope) -> None:
        """Refuse whoever does not bring the token; without one, what a browser sends for a page of elsewhere.

        Raises:
            Refused: with 401 or 403.
        """
        headers = dict(scope["headers"])
        if self.limits.token is None:
            _check_page(headers)
        elif not brings_token(headers, self.limits.token):
            raise Refused(401, "this server asks for a token (Authorization: Bearer …)", "invalid_token")

    @asynccontextmanager
    async def _turn(self, receive: Receive) -> AsyncIterator[Receive]:
        """Wait for a turn among the others; give the request with its body read.

        One whose body has not arrived takes no place: otherwise a few that never arrive would keep all others out.
        """
        received = await self._read(receive)
        if self._here >= self.limits.concurrency + self.limits.waiting:
            raise Refused(503, f"{self._here} requests are here already; try again later", "overloaded")
        self._here += 1
        try:
            async with self._turns:
                yield received
        finally:
            self._here -= 1

    async def _read(self, receive: Receive) -> Receive:
        try:
            with anyio.fail_after(self.limits.body_seconds):
                body = await _body(receive, self.limits.body)
        except TimeoutError:
            raise Refused(408, "the request did not arrive in time", "request_timeout") from None
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return first.pop() if first else await receive()

        return again


def brings_token(headers: Mapping[bytes, bytes], token: str) -> bool:
    """Return whether a request brings the token as ``Authorization: Bearer``."""
    scheme, _, brought = headers.get(b"authorization", b"").partition(b" ")
    return scheme.lower() == b"bearer" and secrets.compare_digest(brought.strip(), token.encode())


def _check_page(headers: Mapping[bytes, bytes]) -> None:
    """Refuse what a browser sends for a page of elsewhere; such a page can give its own name to this address.

    Raises:
        Refused: if the request is for another host, or from a page of another.
    """
    page = headers.get(b"origin")
    foreign = headers.get(b"sec-fetch-site") == b"cross-site"
    if foreign or not is_for_here(headers) or (page is not None and not _is_here(page)):
        raise Refused(403, "without a token this server answers only requests of and to this machine", "foreign")


def is_for_here(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request is addressed to this machine by its own name."""
    return _is_here(b"//" + headers.get(b"host", b""))


def _is_here(address: bytes) -> bool:
    try:
        return is_loopback(urlsplit(address.decode("latin-1")).hostname or "")
    except ValueError:
        return False


async def _body(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the request was broken off", "broken_off")
        body += message.get("body", b"")
        if len(body) > limit:
            raise Refused(413, f"the request is longer than {limit} bytes", "request_too_large")
        more = message.get("more_body", False)
    return bytes(body)


def check_binding(host: str, token: str | None) -> None:
    """Refuse to listen to other machines without a token.

    Raises:
        QuestreeError: if the address is not loopback, and there is no token.
    """
    if token is None and not is_loopback(host):
        raise QuestreeError(
            f"{host} can be reached from other machines, so this server needs a token: put a long random one into a "
            f"file (--token-file) or into {TOKEN_VARIABLE}. Or stay on this machine: --host 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches the address; a name counts only if it is ``localhost``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(file: Path | None = None) -> str | None:
    """Return the token in a file, else in the variable ``QUESTREE_TOKEN``, or None if there is neither.

    Raises:
        QuestreeError: if the file cannot be read, or the token is too short to be a secret or fits no header.
    """
    try:
        given = os.environ.get(TOKEN_VARIABLE) if file is None else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        raise QuestreeError(f"The token cannot be read from {file}: {problem}") from None
    if given is None or (file is None and not given):
        return None
    token, where = given.strip(), file or TOKEN_VARIABLE
    if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise QuestreeError(
            f"The token in {where} must be {_SHORTEST_TOKEN} printable ASCII characters or more. "
            'Make one: python -c "import secrets; print(secrets.token_urlsafe())"'
        )
    return token
