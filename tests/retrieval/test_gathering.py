"""Searches that wait together are one call of the index, and none of them pays for another."""

import asyncio
import threading
from typing import Any

import pytest

from questree.retrieval import Passage
from questree.retrieval.serving import batcher
from questree.retrieval.serving.batcher import Batcher


class Held:
    """An index whose first call waits until it is let go."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int]] = []
        self.entered, self.go = threading.Event(), threading.Event()

    def __call__(self, queries: list[str], k: int) -> list[list[Passage]]:
        self.calls.append((queries, k))
        self.entered.set()
        assert self.go.wait(10)
        if "poison" in queries:
            raise ValueError("poison")
        return [[Passage(id=f"{query}-{k}", text="")] for query in queries if query != "lost"]


def gathered(*later: tuple[list[str], int]) -> tuple[Held, list[Any]]:
    """The index, and what was answered to searches that all came in while it was busy with one for ``first``."""
    held = Held()

    async def run() -> list[Any]:
        gathering = Batcher(held)
        first = asyncio.create_task(gathering.search(["first"], 1))
        await asyncio.to_thread(held.entered.wait, 10)
        tasks = [asyncio.create_task(gathering.search(queries, k)) for queries, k in later]
        await asyncio.sleep(0)
        held.go.set()
        await first
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        return [one if isinstance(one, BaseException) else one[0][0].id for one in answers]

    return held, asyncio.run(run())


def test_searches_that_wait_together_are_one_call():
    held, answers = gathered(*[([f"q{n}"], 2) for n in range(7)])
    assert answers == [f"q{n}-2" for n in range(7)]
    assert held.calls == [(["first"], 1), ([f"q{n}" for n in range(7)], 2)]


def test_searches_for_another_number_of_passages_are_another_call():
    held, answers = gathered((["a"], 1), (["b"], 2), (["c"], 1), (["d"], 2))
    assert answers == ["a-1", "b-2", "c-1", "d-2"]
    assert held.calls[1:] == [(["a", "c"], 1), (["b", "d"], 2)]


def test_a_call_has_a_bounded_number_of_queries(monkeypatch):
    monkeypatch.setattr(batcher, "_MOST", 3)
    held, _ = gathered((["a", "b"], 1), (["c", "d"], 1), (["e"], 1), (["f"] * 9, 1))
    assert [len(queries) for queries, _ in held.calls] == [1, 3, 2, 9]


def test_a_query_that_fails_fails_no_neighbour():
    _, (a, poison, b) = gathered((["a"], 1), (["poison"], 1), (["b"], 1))
    assert (a, str(poison), b) == ("a-1", "poison", "b-1")


def test_an_index_that_gives_too_few_rankings_mixes_up_nobody_s():
    _, (lost, b) = gathered((["lost"], 1), (["b"], 1))
    assert b == "b-1"
    with pytest.raises(RuntimeError, match="0 rankings for 1"):
        raise lost
