"""The exchange with a server: a request that fails in passing is sent again, an answer is checked against a model."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from ...common.errors import QuestreeError
from ...common.forks import renew_in_forks
from .access import TOKEN_VARIABLE, is_loopback

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

_CONNECTIONS = 64
"""The most connections at a time; a thread that finds none free waits."""
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of HTTP after which the same request may succeed."""


class RemoteError(QuestreeError):
    """A retriever server that cannot be reached, or whose answer cannot be used."""


@dataclass(frozen=True)
class RemoteSettings:
    """Patience and bounds.

    Attributes:
        connect_seconds: to open a connection.
        answer_seconds: for one attempt, until the whole answer is there.
        request_seconds: no attempt begins later than this.
        health_seconds: for the first contact, and for each attempt of it.
        retries: of a request that was turned away (429, 5xx) or not answered.
        first_pause: seconds before the first retry; doubled for each further one.
        longest_pause: seconds, even if the server asks for more (``Retry-After``).
        queries_together: the most in one request; fewer if the server takes fewer.
        most_bytes: the most of an answer.
    """

    connect_seconds: float = 5.0
    answer_seconds: float = 60.0
    request_seconds: float = 120.0
    health_seconds: float = 10.0
    retries: int = 4
    first_pause: float = 0.25
    longest_pause: float = 8.0
    queries_together: int = 32
    most_bytes: int = 64 * 2**20


class Passing(Exception):
    """A failure after which the same request may succeed; ``pause`` are the seconds that the server asks for."""

    def __init__(self, fault: str, pause: float | None = None) -> None:
        super().__init__(fault)
        self.pause = pause


def persist(
    attempt: Callable[[], T],
    settings: RemoteSettings,
    seconds: float,
    wait: Callable[[float], None],
    *,
    server: str,
    advice: str,
) -> T:
    """Return what an attempt returns; one that raises `Passing` is made again, as settings say.

    Args:
        attempt: one request.
        settings: how often, and after which pauses.
        seconds: in which the last attempt begins.
        wait: called with the seconds of each pause.
        server: that is asked, for messages.
        advice: what to do if it does not answer.

    Raises:
        RemoteError: if none succeeded.
    """
    import tenacity

    def pause(state: RetryCallState) -> float:
        asked = getattr(state.outcome and state.outcome.exception(), "pause", None)
        own = settings.first_pause * 2 ** (state.attempt_number - 1) if asked is None else asked
        return float(min(own * random.uniform(1, 1.25), settings.longest_pause))  # chance keeps workers from meeting

    def give_up(state: RetryCallState) -> NoReturn:
        fault = state.outcome.exception() if state.outcome else None
        raise RemoteError(
            f"{server} gave no answer in {state.attempt_number} attempts; the last one: {fault}. {advice}"
        ) from fault

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Passing),
        stop=tenacity.stop_after_attempt(settings.retries + 1) | tenacity.stop_before_delay(seconds),
        wait=pause,
        sleep=wait,
        retry_error_callback=give_up,
    )
    return retrying(attempt)


class Exchange:
    """Requests to one address; safe in several threads."""

    def __init__(
        self, address: str, token: str | None, settings: RemoteSettings, wait: Callable[[float], None]
    ) -> None:
        self._host, self._token = _checked(address), token
        self.address, self.settings = address.rstrip("/"), settings
        self._wait = wait
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        """Begin with no connections; those of another process are not used."""
        import httpx

        self._client = httpx.Client(
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            headers={"Authorization": f"Bearer {self._token}"} if self._token else {},
            trust_env=not is_loopback(self._host),  # a proxy of the environment leads away from this machine
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, model: type[Model], path: str, asked: BaseModel | None = None) -> Model:
        """Return the answer to a request, as a model; without a question, it is the first contact.

        Raises:
            RemoteError: if no attempt was answered, the request was refused, or the answer does not fit the model.
        """
        content = None if asked is None else asked.model_dump_json()
        seconds = self.settings.health_seconds if asked is None else self.settings.request_seconds
        body = persist(
            lambda: self._attempt(path, content, min(seconds, self.settings.answer_seconds)),
            self.settings,
            seconds,
            self._wait,
            server=f"The retriever server at {self.address}",
            advice=f"See that it runs: questree serve-retriever INDEX; its health: {self.address}/health",
        )
        try:
            return model.model_validate_json(body)
        except ValidationError as error:
            fault = error.errors()[0]
            raise unusable(self.address, f"{'.'.join(map(str, fault['loc'])) or 'answer'}: {fault['msg']}") from None

    def _attempt(self, path: str, content: str | None, seconds: float) -> bytes:
        import httpx

        settings, body, until = self.settings, bytearray(), time.monotonic() + seconds
        try:
            with self._client.stream(
                "GET" if content is None else "POST",
                self.address + path,
                content=content,
                headers={"Content-Type": "application/json"},
                timeout=httpx.Timeout(seconds, connect=min(seconds, settings.connect_seconds)),
            ) as response:
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > settings.most_bytes:
                        raise unusable(self.address, f"more than {settings.most_bytes:,} bytes")
                    if time.monotonic() > until:  # httpx bounds each wait, and a server may drip
                        raise Passing("ReadTimeout: the answer took too long as a whole")
        except httpx.RequestError as problem:
            raise Passing(f"{type(problem).__name__}: {problem}") from problem
        status = response.status_code
        if status == 200:
            return bytes(body)
        fault = f"HTTP {status}: {_message(bytes(body))}"
        if status in PASSING:
            raise Passing(fault, retry_after(response.headers.get("Retry-After")))
        raise RemoteError(f"{self.address} refused the request ({fault}).{_advice(status)}")


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
    try:
        return float(header) if header and header.strip().isdecimal() else _until(header or "")
    except (ValueError, TypeError, OverflowError):
        return None


def _until(date: str) -> float:
    return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
