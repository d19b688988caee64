"""The exchange with a server: a request that fails in passing is sent again, an answer is checked against a model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from ...common.errors import QuestreeError
from ...common.forks import renew_in_forks
from .patience import PASSING, Passing, Patience, Unanswered
from .patience import RemoteSettings as RemoteSettings
from .server_limits import TOKEN_VARIABLE, is_loopback
from .time_limits import all_within, limit_exchanges
from .wire import Health

if TYPE_CHECKING:
    import httpx

Model = TypeVar("Model", bound=BaseModel)

_CONNECTIONS = 64
"""The most connections at a time; a thread that finds none free waits."""


class RemoteError(QuestreeError):
    """A retriever server that cannot be reached, or whose answer cannot be used."""


class Exchange:
    """Requests to one address; safe in several threads."""

    def __init__(
        self, address: str, token: str | None, settings: RemoteSettings, wait: Callable[[float], None]
    ) -> None:
        self._host, self._token = _checked(address), token
        self.address, self.settings = address.rstrip("/"), settings
        self._patience = Patience(settings, wait)
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        """Begin with no connections; those of another process are not used."""
        import httpx

        client = httpx.Client(
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            headers={"Authorization": f"Bearer {self._token}"} if self._token else {},
            trust_env=not is_loopback(self._host),  # a proxy of the environment leads away from this machine
        )
        self._client = limit_exchanges(client)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, model: type[Model], path: str, asked: BaseModel | None) -> Model:
        """Return the answer to a request, as a model.

        Raises:
            RemoteError: if no attempt was answered, the request was refused, or the answer does not fit the model.
        """
        content = None if asked is None else asked.model_dump_json().encode()
        return _understood(model, self._answer(path, content, self.settings.request_seconds), self.address)

    def first_contact(self) -> Health:
        """Return what the server says of itself; raise what `ask` raises, and sooner."""
        return _understood(Health, self._answer("/health", None, self.settings.health_seconds), self.address)

    def _answer(self, path: str, content: bytes | None, seconds: float) -> bytes:
        try:
            return self._patience.persist(partial(self._attempt, path, content), seconds)
        except Unanswered as silent:
            raise RemoteError(
                f"The retriever server at {self.address} gave {silent}. See that it runs: questree serve-retriever "
                f"INDEX; its health: {self.address}/health"
            ) from silent

    def _attempt(self, path: str, content: bytes | None, seconds: float) -> bytes:
        import httpx

        try:
            status, headers, body = self._exchange(path, content, seconds)
        except httpx.RequestError as problem:
            raise Passing(f"{type(problem).__name__}: {problem}") from problem
        if status == 200:
            return body
        fault = f"HTTP {status}: {_message(body)}"
        if status in PASSING:
            raise Passing(fault, retry_after(headers.get("Retry-After")))
        raise RemoteError(f"{self.address} refused the request ({fault}).{_advice(status)}")

    def _exchange(self, path: str, content: bytes | None, seconds: float) -> tuple[int, httpx.Headers, bytes]:
        import httpx

        method = "GET" if content is None else "POST"
        headers = {} if content is None else {"Content-Type": "application/json"}
        seconds = min(seconds, self.settings.answer_seconds)
        patience = httpx.Timeout(seconds, connect=min(seconds, self.settings.connect_seconds))
        asked = self._client.stream(method, self.address + path, content=content, headers=headers, timeout=patience)
        body = bytearray()
        with all_within(seconds), asked as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > self.settings.most_bytes:
                    raise unusable(self.address, f"more than {self.settings.most_bytes:,} bytes")
        return response.status_code, response.headers, bytes(body)


def _checked(address: str) -> str:
    """Return the host of an address, or refuse the address."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as problem:
        raise RemoteError(f"{address} is no address ({problem}). Write http://host:port.") from None
    if parts.username is not None or parts.password is not None:
        raise RemoteError(f"Give no name or password in an address: a server's token goes into {TOKEN_VARIABLE}.")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise RemoteError(f"{address} is no address of a retriever server. Write http://host:port.")
    return host


def _understood(model: type[Model], body: bytes, address: str) -> Model:
    try:
        json.loads(body, object_pairs_hook=_check_repeats)  # pydantic takes the last of a repeated field
        return model.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors()[0]
        raise unusable(address, f"{'.'.join(map(str, fault['loc'])) or 'answer'}: {fault['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise unusable(address, f"no JSON: {error}") from None


def _check_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a field is there twice")


def unusable(address: str, what: str) -> RemoteError:
    """Return the error of an answer that cannot be used."""
    return RemoteError(
        f"{address} gave an answer that cannot be used ({what}). See that it is a retriever server of this version "
        "of questree (questree serve-retriever) and that no proxy stands between."
    )


def _message(body: bytes) -> str:
    """Return the message of an error, cut short."""
    try:
        text = str(json.loads(body)["error"]["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        text = body.decode(errors="replace")
    return " ".join(text.split())[:200]


def _advice(status: int) -> str:
    if status in (401, 403):
        return f" Put the server's token into {TOKEN_VARIABLE}."
    return " See that it is the address of a retriever server." if status in (301, 302, 307, 308, 404, 405) else ""


def retry_after(header: str | None) -> float | None:
    """Return the seconds of a number or a date, or None if it is neither."""
    if not header:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
