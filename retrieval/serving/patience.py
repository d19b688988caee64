"""Requests that are sent again after a failure in passing: how often, after which pauses, for how long in all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

clock = time.monotonic

T = TypeVar("T")

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of HTTP after which the same request may succeed."""


@dataclass(frozen=True)
class RemoteSettings:
    """Patience and bounds.

    Attributes:
        connect_seconds: to open a connection.
        answer_seconds: for one attempt, until the whole answer is there, however it comes.
        request_seconds: for a request with all its attempts and the pauses between.
        health_seconds: the same for the first contact.
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
    """A failure after which the same request may succeed.

    Args:
        fault: what happened.
        pause: the seconds that the server asks for; None if it asks for none.
    """

    def __init__(self, fault: str, pause: float | None = None) -> None:
        super().__init__(fault)
        self.pause = pause


class Unanswered(Exception):
    """No attempt succeeded: how many there were, and the last fault."""


class Patience:
    """Sends requests again, as settings say.

    Args:
        settings: how often, and for how long.
        wait: called with the seconds of each pause.
    """

    def __init__(self, settings: RemoteSettings, wait: Callable[[float], None]) -> None:
        self._settings, self._wait = settings, wait
        self._jitter = random.Random()

    def persist(self, attempt: Callable[[float], T], seconds: float) -> T:
        """Return what an attempt returns; one that raises `Passing` is made again.

        Args:
            attempt: is called with the seconds that are left.
            seconds: for all attempts and the pauses between.

        Raises:
            Unanswered: if none succeeded.
        """
        until, attempts = clock() + seconds, 0
        while True:
            attempts += 1
            try:
                return attempt(until - clock())
            except Passing as fault:
                pause = self._pause(attempts - 1, fault.pause)
                if attempts > self._settings.retries or clock() + pause >= until:
                    raise Unanswered(f"no answer in {attempts} attempts; the last one: {fault}") from fault
            self._wait(pause)

    def _pause(self, attempt: int, asked: float | None) -> float:
        """Return the seconds that the server asks for, else a doubled pause; chance keeps workers from meeting."""
        seconds = self._settings.first_pause * 2**attempt if asked is None else asked
        return min(seconds * self._jitter.uniform(1.0, 1.25), self._settings.longest_pause)
