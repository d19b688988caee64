"""What requests to servers share: patience with one that is busy or away, and the error if it gives no answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import sleep
from typing import TypeVar

from ...common.errors import QuestreeError

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
    for failed in range(settings.retries + 1):
        try:
            return attempt()
        except TransientFault as fault:
            last = fault
        if failed < settings.retries:
            wanted = settings.first_pause * 2**failed if last.pause is None else last.pause
            sleep(min(wanted * random.uniform(1, 1.25), settings.longest_pause))  # chance keeps workers from meeting
    raise RemoteError(f"{server} gave no answer in {failed + 1} attempts; the last one: {last}. {advice}") from last


def one_line(problem: object) -> str:
    """Return the beginning of an error, in one line."""
    return " ".join(str(problem).split())[:200]
