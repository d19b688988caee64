"""The batcher: searches that wait at the same time become one call of the index."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

from ..passage import Passage
from .server_limits import Refused

Rankings = list[list[Passage]]


@dataclass(frozen=True)
class _Asked:
    queries: list[str]
    k: int
    answer: Future[Rankings] = field(default_factory=Future)


class Batcher:
    """One thread that searches; the searches that come in meanwhile become its next call.

    Only searches for the same number of passages share a call: an index that approximates may rank otherwise for
    another number. If a call fails, each of its searches is tried alone, so that no query makes another fail.

    Args:
        search: of the index: gives a list of passages for each query.
        most: the most queries in a call; a search that brings more has a call of its own.
        window: seconds to wait for further searches before a call. With 0, a lone search waits for nothing.
    """

    def __init__(self, search: Callable[[list[str], int], Rankings], *, most: int = 64, window: float = 0.0) -> None:
        self._search, self._most, self._window = search, most, window
        self._waiting: deque[_Asked] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._worker = threading.Thread(target=self._work, name="questree-search", daemon=True)
        self._worker.start()

    def submit(self, queries: list[str], k: int) -> Future[Rankings]:
        """Return a future of the queries' rankings.

        Raises:
            Refused: if the server is being shut down.
        """
        asked = _Asked(queries, k)
        with self._changed:
            if self._closed:
                raise Refused(503, "the server is shutting down", "shutting_down")
            self._waiting.append(asked)
            self._changed.notify()
        return asked.answer

    def close(self) -> None:
        """Answer the searches that wait, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._worker.join()

    def _work(self) -> None:
        while gathered := self._gathered():
            wanted = [asked for asked in gathered if asked.answer.set_running_or_notify_cancel()]
            if wanted:
                self._answer(wanted)

    def _gathered(self) -> list[_Asked]:
        """Return the next call's searches; an empty list if it is closed and nothing waits."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._closed)
            if self._window:
                self._changed.wait_for(lambda: self._closed or self._enough(), self._window)
            return self._taken()

    def _enough(self) -> bool:
        return sum(len(asked.queries) for asked in self._waiting) >= self._most

    def _taken(self) -> list[_Asked]:
        """Return the first search that waits and the others that fit its call; the rest keep their order."""
        taken: list[_Asked] = []
        room = self._most
        for asked in list(self._waiting):
            if not taken or (asked.k == taken[0].k and len(asked.queries) <= room):
                taken.append(asked)
                room -= len(asked.queries)
        chosen = set(map(id, taken))
        self._waiting = deque(asked for asked in self._waiting if id(asked) not in chosen)
        return taken

    def _answer(self, wanted: list[_Asked]) -> None:
        queries = [query for asked in wanted for query in asked.queries]
        try:
            found = self._search(queries, wanted[0].k)
            if len(found) != len(queries):
                raise RuntimeError(f"the index gave {len(found)} rankings for {len(queries)} queries")
        except Exception as fault:
            if len(wanted) == 1:
                wanted[0].answer.set_exception(fault)
                return
            for asked in wanted:
                self._answer([asked])
            return
        rankings = iter(found)
        for asked in wanted:
            asked.answer.set_result(list(islice(rankings, len(asked.queries))))
