"""The queue of questions: so many at a time, the others wait with a number, and no client takes all places."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ..retrieval.serving.server_limits import Refused


class Queue:
    """Turns on one event loop, in the order of arrival.

    Args:
        running: the most turns at a time.
        waiting: the most that wait for one.
        per_client: the most of one client, running and waiting.
    """

    def __init__(self, running: int, waiting: int, per_client: int):
        self._free, self._most, self._per_client = running, running + waiting, per_client
        self._line: dict[asyncio.Future[None], Callable[[int], None]] = {}
        self._of_client = Counter[str]()

    def enter(self, client: str) -> None:
        """Count a question of a client, from when it is asked to `leave`.

        Raises:
            Refused: with 429 if the client has enough; with 503 if the queue is full.
        """
        if self._of_client[client] >= self._per_client:
            message = f"{self._per_client} questions of yours are on their way; wait until one has ended"
            raise Refused(429, message, "too_many_questions")
        here = sum(self._of_client.values())
        if here >= self._most:
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
        if self._free:
            self._free -= 1
        else:
            await self._wait(told)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, told: Callable[[int], None]) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line[called] = told
        told(len(self._line))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._next()  # the turn came at the same moment: it goes to the next
            elif called in self._line:
                place = list(self._line).index(called)
                del self._line[called]
                self._tell_places(place)
            raise

    def _next(self) -> None:
        """Give a turn that is free to the first who waits."""
        while self._line:
            called = next(iter(self._line))
            del self._line[called]
            if not called.done():  # else it was cancelled, and has not run since
                called.set_result(None)
                self._tell_places()
                return
        self._free += 1

    def _tell_places(self, first: int = 0) -> None:
        """Tell those who have moved up: from a place on."""
        for place, told in list(enumerate(self._line.values(), start=1))[first:]:
            told(place)
