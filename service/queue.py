"""The queue of questions: so many at a time, the others wait with a number, and no client takes all places."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from anyio import CapacityLimiter

from ..retrieval.serving.server_limits import Refused
from .service_limits import ServiceLimits


class Queue:
    """Turns on one event loop, in the order of arrival, within limits of all questions and of one client's."""

    def __init__(self, limits: ServiceLimits):
        self._limits = limits
        self._turns = CapacityLimiter(limits.max_running)
        self._line: dict[object, Callable[[int], None]] = {}
        self._of_client = Counter[str]()

    def enter(self, client: str) -> None:
        """Count a question of a client, from when it is asked to `leave`.

        Raises:
            Refused: with 429 if the client has enough; with 503 if the queue is full.
        """
        if self._of_client[client] >= self._limits.per_client:
            message = f"{self._limits.per_client} questions of yours are on their way; wait until one has ended"
            raise Refused(429, message, "too_many_questions")
        here = sum(self._of_client.values())
        if here >= self._limits.max_running + self._limits.max_queued:
            raise Refused(503, f"{here} questions are here already; try again later", "overloaded")
        self._of_client[client] += 1

    def leave(self, client: str) -> None:
        """Count a question of a client no more."""
        self._of_client[client] -= 1
        self._of_client += Counter()  # forgets who has none

    @asynccontextmanager
    async def turn(self, told: Callable[[int], None]) -> AsyncIterator[None]:
        """Wait for a turn and hold it while the block runs.

        Args:
            told: is called with the place in the queue, from 1, each time it changes.
        """
        waiting = object()
        if self._turns.available_tokens <= 0 or self._line:
            self._line[waiting] = told
            told(len(self._line))
        try:
            await self._turns.acquire_on_behalf_of(waiting)
        finally:
            self._step_out(waiting)
        try:
            yield
        finally:
            self._turns.release_on_behalf_of(waiting)

    def _step_out(self, waiting: object) -> None:
        """Take one who waited out of the line, and tell those behind that they have moved up."""
        if waiting in self._line:
            place = list(self._line).index(waiting)
            del self._line[waiting]
            for number, told in list(enumerate(self._line.values(), start=1))[place:]:
                told(number)
