"""What requests to servers share: patience with one that is busy or away, and the error if it gives no answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING, NoReturn, TypeVar

from ...common.errors import QuestreeError

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

QUERIES_TOGETHER = 32
"""Of a request; fewer if the server takes fewer."""
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of HTTP after which the same request may succeed."""


class RemoteError(QuestreeError):
    """A server of passages that cannot be reached, or whose answer cannot be used."""


class TransientFault(Exception):
    """A failure after which the same request may succeed; ``pause`` are the seconds that the server asks for."""

    def __init__(self, fault: object, pause: float | None = None) -> None:
        super().__init__(f"{type(fault).__name__}: {fault}" if isinstance(fault, Exception) else fault)
        self.pause = pause


@dataclass(frozen=True)
class RemoteSettings:
    """Patience with a server.

    Attributes:
        connect_seconds: to open a connection.
        answer_seconds: for each wait for a part of an answer.
        retries: of a request that was turned away (429, 5xx) or not answered.
        first_pause: seconds before the first retry; doubled for each further one.
        longest_pause: seconds, even if the server asks for more (``Retry-After``).
    """

    connect_seconds: float = 5.0
    answer_seconds: float = 60.0
    retries: int = 4
    first_pause: float = 0.25
    longest_pause: float = 8.0


def retried(attempt: Callable[[], T], settings: RemoteSettings, *, server: str, advice: str) -> T:
    """Return what an attempt returns; one that raises `TransientFault` is made again, as the settings say.

    Args:
        advice: what to do if the server does not answer.
    """
    import tenacity

    def pause(state: RetryCallState) -> float:
        wanted = getattr(state.outcome and state.outcome.exception(), "pause", None)
        own = settings.first_pause * 2 ** (state.attempt_number - 1) if wanted is None else wanted
        return float(min(own * random.uniform(1, 1.25), settings.longest_pause))  # chance keeps workers from meeting

    def give_up(state: RetryCallState) -> NoReturn:
        fault = state.outcome.exception() if state.outcome else None
        raise RemoteError(
            f"{server} gave no answer in {state.attempt_number} attempts; the last one: {fault}. {advice}"
        ) from fault

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(TransientFault),
        stop=tenacity.stop_after_attempt(settings.retries + 1),
        wait=pause,
        sleep=sleep,
        retry_error_callback=give_up,
    )(attempt)


def first_line(problem: object) -> str:
    """Return the beginning of an error, in one line."""
    return " ".join(str(problem).split())[:200]
