"""Turns in order, places that are told, and bounds that hold whoever leaves."""

import asyncio

import pytest

from questree.retrieval.serving.server_limits import Refused
from questree.service.queue import Queue
from questree.service.service_limits import ServiceLimits


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


class Visitor:
    """A question that holds its turn until it is told to go."""

    def __init__(self, queue: Queue):
        self.places: list[int] = []
        self.here = False
        self.go = asyncio.Event()
        self.task = asyncio.create_task(self._visit(queue))

    async def _visit(self, queue: Queue) -> None:
        async with queue.turn(self.places.append):
            self.here = True
            await self.go.wait()
        self.here = False


async def test_turns_come_in_order_and_places_are_told():
    queue = Queue(ServiceLimits(max_running=1, max_queued=8, per_client=8))
    visitors = [Visitor(queue) for _ in range(4)]
    await settled()
    assert [one.here for one in visitors] == [True, False, False, False]
    visitors[2].task.cancel()
    await settled()
    visitors[0].go.set()
    await settled()
    assert [one.here for one in visitors] == [False, True, False, False]
    assert [one.places for one in visitors] == [[], [1], [2], [3, 2, 1]]


async def test_a_turn_that_came_to_one_who_left_goes_to_the_next():
    queue = Queue(ServiceLimits(max_running=1, max_queued=8, per_client=8))
    first, second, third = (Visitor(queue) for _ in range(3))
    await settled()
    first.task.cancel()
    await asyncio.sleep(0)  # the turn is given to the second, which has not run yet
    second.task.cancel()
    await settled()
    assert third.here


def test_no_client_takes_all_places_and_a_full_queue_refuses():
    queue = Queue(ServiceLimits(max_running=1, max_queued=2, per_client=2))
    queue.enter("a")
    queue.enter("a")
    with pytest.raises(Refused, match="2 questions of yours") as many:
        queue.enter("a")
    queue.enter("b")
    with pytest.raises(Refused, match="3 questions are here") as full:
        queue.enter("c")
    assert (many.value.status, full.value.status) == (429, 503)
    for client in "aab":
        queue.leave(client)
    assert not queue._of_client
    queue.enter("c")
