"""The limits of every server here: loopback unless there is a token, bounded bodies, refusals in one form."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...common.text import printable
from .access import is_loopback


@dataclass(frozen=True)
class ServerLimits:
    """How long a request may be, and who may ask.

    Attributes:
        body: the most bytes of a request; a longer one is refused (413).
        token: what a request must bring as ``Authorization: Bearer``, else it is refused (401); None asks for none, and
            answers only requests to this machine by its own name (403).
    """

    body: int = 4 * 2**20
    token: str | None = field(default=None, repr=False)


class Refused(Exception):
    """A request that is answered with an error, in the form of OpenAI's.

    Args:
        headers: of the answer, beside those that belong to its status.
    """

    def __init__(self, status: int, message: str, code: str, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.status, self.code = status, code
        own = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}
        self.headers = own.get(status, {}) | dict(headers or {})

    def response(self) -> Response:
        """Return the answer."""
        return JSONResponse(self.body(), status_code=self.status, headers=self.headers)

    def body(self) -> dict[str, dict[str, str | None]]:
        """Return what the answer says."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.code}}


def limited_app(
    title: str, limits: ServerLimits, *, guard: type[RequestLimits] | None = None, hint: str = "", **given: Any
) -> FastAPI:
    """Return an application without routes that keeps to limits and refuses in one form.

    Args:
        guard: the middleware that holds it to them; by default `RequestLimits`.
        hint: what is said to a request for an address that there is none of.
    """
    app = FastAPI(title=title, docs_url=None, redoc_url=None, **given)
    app.add_middleware(guard or RequestLimits, limits=limits)
    app.add_exception_handler(HTTPException, partial(_refuse_unrouted, hint))
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    return app


async def _refuse_unrouted(hint: str, request: Request, error: Exception) -> Response:
    """Refuse a request that no route takes, or whose JSON FastAPI could not begin with, as others are refused."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        error.detail = f"there is no {printable(request.url.path)[:80]} here{hint}"
    if error.status_code == 400:
        error.detail = "the body cannot be read: send JSON in UTF-8, not nested too deep"
    raise Refused(error.status_code, error.detail, HTTPStatus(error.status_code).name.lower(), error.headers)


async def _refuse_invalid(request: Request, error: Exception) -> Response:
    """Refuse a request that does not fit, in the form of other refusals."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # it was not read as JSON, as curl's -d sends a form
        raise Refused(400, "the body is not JSON; send it with Content-Type: application/json", "invalid_request")
    fault = error.errors()[0]
    where = ".".join(map(str, fault["loc"])) or "body"
    raise Refused(400, f"{where}: {fault['msg']}", "invalid_request")


class RequestLimits:
    """ASGI middleware that holds an application to its limits and answers the requests that are `Refused`."""

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self.check_caller(scope)
            await self._app(scope, await self._read(receive), send)
        except Refused as refused:
            await self.refusal(refused, scope)(scope, receive, send)

    def refusal(self, refused: Refused, scope: Scope) -> Response:
        """Return the answer to a request that is refused."""
        return refused.response()

    def check_caller(self, scope: Scope) -> None:
        """Refuse whoever does not bring the token; without one, what a browser sends for a page of another site.

        Such a page can give its own name to this address.

        Raises:
            Refused: with 401; with 403 if the request is for another host, or from a page of another.
        """
        headers = dict(scope["headers"])
        if self.limits.token is not None:
            if not brings_token(headers, self.limits.token):
                raise Refused(401, "this server asks for a token (Authorization: Bearer …)", "invalid_token")
            return
        page, foreign = headers.get(b"origin"), headers.get(b"sec-fetch-site") == b"cross-site"
        if foreign or not is_for_here(headers) or (page is not None and not _is_here(page)):
            raise Refused(403, "without a token this server answers only requests of and to this machine", "foreign")

    async def _read(self, receive: Receive) -> Receive:
        """Read the body, and return what gives it to the application."""
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the request was broken off", "broken_off")
            body += message.get("body", b"")
            if len(body) > self.limits.body:
                raise Refused(413, f"the request is longer than {self.limits.body} bytes", "request_too_large")
            more = message.get("more_body", False)
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        return again


def brings_token(headers: Mapping[bytes, bytes], token: str) -> bool:
    """Return whether a request brings the token as ``Authorization: Bearer``."""
    scheme, _, brought = headers.get(b"authorization", b"").partition(b" ")
    return scheme.lower() == b"bearer" and secrets.compare_digest(brought.strip(), token.encode())


def is_for_here(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request is addressed to this machine by its own name."""
    return _is_here(b"//" + headers.get(b"host", b""))


def _is_here(address: bytes) -> bool:
    try:
        return is_loopback(urlsplit(address.decode("latin-1")).hostname or "")
    except ValueError:
        return False
