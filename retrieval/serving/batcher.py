"""The batcher: searches that wait at the same time become one call of the index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from starlette.concurrency import run_in_threadpool

from ..passage import Passage

Rankings = list[list[Passage]]

_MOST = 64
"""Queries in a call; a search that brings more has a call of its own."""


@dataclass(eq=False)
class _WaitingSearch:
    queries: list[str]
    k: int
    found: Rankings | Exception | None = None


class Batcher:
    """Searches one call at a time; the searches that come in meanwhile become the next call.

    Only searches for the same number of passages share a call: an index that approximates may rank otherwise for
    another number. If a call fails, each of its searches is tried alone, so that no query makes another fail.

    Args:
        search: of the index: gives a list of passages for each query.
    """

    def __init__(self, search: Callable[[list[str], int], Rankings]) -> None:
        self._search = search
        self._waiting: list[_WaitingSearch] = []
        self._turn = asyncio.Lock()

    async def search(self, queries: list[str], k: int) -> Rankings:
        """Return the queries' rankings; raise what the index raises."""
        one = _WaitingSearch(queries, k)
        self._waiting.append(one)
        async with self._turn:  # whose turn it is searches for all who fit its call
            if one.found is None:
                await self._answer(self._together(one))
        if isinstance(one.found, Exception):
            raise one.found
        return one.found or []

    def _together(self, first: _WaitingSearch) -> list[_WaitingSearch]:
        """Take a search and the others that fit its call from those that wait."""
        taken, room = [first], _MOST - len(first.queries)
        for other in self._waiting:
            if other is not first and other.k == first.k and len(other.queries) <= room:
                taken.append(other)
                room -= len(other.queries)
        self._waiting = [one for one in self._waiting if one not in taken]
        return taken

    async def _answer(self, taken: list[_WaitingSearch]) -> None:
        queries = [query for one in taken for query in one.queries]
        try:
            found = await run_in_threadpool(self._search, queries, taken[0].k)
            if len(found) != len(queries):
                raise RuntimeError(f"the index gave {len(found)} rankings for {len(queries)} queries")
        except Exception as fault:
            taken[0].found = fault
            for one in taken if len(taken) > 1 else ():
                await self._answer([one])
            return
        rankings = iter(found)
        for one in taken:
            one.found = list(islice(rankings, len(one.queries)))
