"""Plain code on an event loop: what it waits for, its context, its errors, and how it is cancelled."""

import asyncio
import threading
from contextvars import ContextVar
from functools import partial

import pytest

from questree.common.event_loop import awaited, off_loop, on_loop, run


async def test_plain_code_waits_for_a_coroutine_and_the_event_loop_goes_on():
    told: list[str] = []
    gate = asyncio.Event()

    def plain() -> str:
        told.append("waits")
        awaited(gate.wait())
        return "done"

    waiting = asyncio.create_task(run(plain))
    await asyncio.sleep(0)
    told.append("the loop goes on")
    gate.set()
    assert await waiting == "done"
    assert told == ["waits", "the loop goes on"]


def test_what_it_waits_for_raises_where_it_waits_and_what_it_raises_comes_out():
    async def broken() -> None:
        raise KeyError("inside")

    def plain() -> None:
        try:
            awaited(broken())
        except KeyError as error:
            raise ValueError("outside") from error

    with pytest.raises(ValueError, match="outside") as raised:
        asyncio.run(run(plain))
    assert isinstance(raised.value.__cause__, KeyError)


def test_it_shares_the_context_of_its_coroutine():
    here: ContextVar[int] = ContextVar("here", default=0)

    async def seen() -> int:
        return here.get()

    def plain() -> tuple[int, int]:
        before = here.get()
        here.set(2)
        return before, awaited(seen())

    async def go() -> tuple[tuple[int, int], int]:
        here.set(1)
        return await run(plain), here.get()

    assert asyncio.run(go()) == ((1, 2), 2)
    assert here.get() == 0


async def test_two_at_a_time_have_a_context_each():
    here: ContextVar[int] = ContextVar("here", default=0)

    def plain(n: int) -> int:
        here.set(n)
        awaited(asyncio.sleep(0))
        return here.get()

    assert await asyncio.gather(*(run(partial(plain, n)) for n in range(50))) == list(range(50))


async def test_cancelled_it_ends_where_it_waits():
    told: list[str] = []

    def plain() -> None:
        try:
            awaited(asyncio.Event().wait())
        finally:
            told.append("tidied")

    task = asyncio.create_task(run(plain))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == ["tidied"]


def test_what_takes_a_while_runs_beside_the_loop_and_otherwise_right_here():
    assert asyncio.run(run(partial(off_loop, threading.current_thread))) is not threading.current_thread()
    assert off_loop(threading.current_thread) is threading.current_thread()
    assert not on_loop()
