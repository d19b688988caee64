"""Who may come in: this machine, or whoever brings the token; and no page of another site may ask for them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Message, Receive, Scope, Send

from ..pages import as_html
from ..retrieval.serving.server_limits import Refused, RequestLimits, brings_token, is_for_here

_OPEN = ("/login", "/static/", "/health")
"""Addresses that need no token: they hold nothing of anybody."""
_SAFE = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PDF_POLICY = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""For a PDF: what browsers draw it with is an element of a page of their own."""
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class PageAuth(RequestLimits):
    """The guard of pages and API: a browser may bring the token in a cookie, which `cookie_of` makes.

    A page of another site may lead here, but it cannot ask: what changes something must come from our own pages, or
    from a program that brings the token.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with the headers that keep other people's text from running."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope.get("method") == "HEAD":  # of which the server sends no body
            scope = {**scope, "method": "GET"}
        await super().__call__(scope, receive, send_with_headers)

    def check_caller(self, scope: Scope) -> None:
        """Refuse whoever may not come in.

        Raises:
            Refused: with 401 without the token, with 403 for a page of another site.
        """
        headers, token = dict(scope["headers"]), self.limits.token
        if token is not None and brings_token(headers, token):
            return
        if token is None and not is_for_here(headers):
            raise Refused(403, "without a token this server answers only requests to this machine", "foreign")
        if scope["method"] not in _SAFE and not _is_own_page(headers):
            raise Refused(403, "a page of another address may not ask here", "foreign")
        if token is not None and not scope["path"].startswith(_OPEN) and not _brings_cookie(scope, token):
            raise Refused(401, "this server asks for a token (Authorization: Bearer …)", "invalid_token")

    def refusal(self, refused: Refused, scope: Scope) -> Response:
        """Return the answer to a request that is refused: a page to a browser, JSON to a program."""
        if b"text/html" not in dict(scope["headers"]).get(b"accept", b""):
            return refused.response()
        if refused.status == 401 and scope["method"] in _SAFE:
            wanted = scope["path"] + ("?" + scope["query_string"].decode("latin-1") if scope["query_string"] else "")
            return RedirectResponse(f"/login?then={quote(wanted)}", 303)
        page = as_html("error.html", title="This cannot be done", problem=f"{str(refused).rstrip('.')}.")
        return HTMLResponse(page, refused.status, refused.headers)


def cookie_of(token: str) -> str:
    """Return what a browser brings in the token's place: it proves that the token was known, and does not tell it."""
    return hmac.new(token.encode(), b"questree's pages", hashlib.sha256).hexdigest()


def cookie_name(scope: Scope) -> str:
    """Return the cookie's name: a browser sends the cookies of a host to all its ports."""
    _, port = scope.get("server") or ("", "")
    return f"questree-{port}"


def _brings_cookie(scope: Scope, token: str) -> bool:
    brought = cookie_parser(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1")).get(cookie_name(scope), "")
    return secrets.compare_digest(brought.encode(), cookie_of(token).encode())


def _is_own_page(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request is from a page of this address, or from no page at all."""
    page, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", b"none")
    if site not in (b"none", b"same-origin"):
        return False
    return page is None or page.partition(b"://")[2] == headers.get(b"host")
