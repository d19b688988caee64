"""Calls that run at the same time, and calls that are abandoned when their time is over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLateError
from concurrent.futures import wait as wait_for
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from math import inf
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import dspy
from dspy.utils.exceptions import LMTimeoutError

from ..common.event_loop import awaited, on_loop, run
from .episode import Place, next_place
from .scope import scoped

T = TypeVar("T")


def run_parallel(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run independent tasks at the same time; return their results in the order of the tasks.

    Each has a thread of its own, or is a task of the event loop that runs the caller.
    A task runs in a copy of the caller's context: its LM and adapter, its episode, its MLflow trace. DSPy's own trace,
    from which demonstrations are made, gets the calls in the order of the tasks as well, whichever ends first.

    Raises:
        Exception: that of the first task, in order, that failed; raised after all tasks have ended.
    """
    if len(tasks) < 2:
        return [task() for task in tasks]
    fork = next_place()
    apart = [partial(_apart, task, (*fork, n)) for n, task in enumerate(tasks)]
    results = []
    for outcome in awaited(_as_tasks(apart)) if on_loop() else _on_threads(apart):
        if isinstance(outcome, BaseException):
            raise outcome
        result, trace = outcome
        _add_to_trace(trace)
        results.append(result)
    return results


def _on_threads(tasks: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """Return the outcome of each task, once all have ended."""
    branches = [on_thread(task) for task in tasks]
    wait_for(branches)
    return [branch.exception() or branch.result() for branch in branches]


async def _as_tasks(tasks: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """Return the outcome of each task, once all have ended; if cancelled, wait until all are cancelled."""
    return await asyncio.gather(*map(run, tasks), return_exceptions=True)


def _apart(task: Callable[[], T], place: Place) -> tuple[T, list[Any]]:
    """Run the task and count its steps under a place; return its result with the trace of its own calls."""
    trace: list[Any] = []
    with scoped({"trace": None if dspy.settings.trace is None else trace}, place=place, is_apart=True):
        return task(), trace


def _add_to_trace(calls: list[Any]) -> None:
    trace = dspy.settings.trace
    if calls and trace is not None:
        trace.extend(calls)
        del trace[: max(0, len(trace) - dspy.settings.max_trace_size)]


class AbandonedError(LMTimeoutError):
    """A task's time is over; its connection is closed, or its thread goes on unattended until it ends."""


def within(
    seconds: float, task: Callable[[], T], without_thread: Callable[[], Coroutine[Any, Any, T]] | None = None
) -> T:
    """Run the task in a copy of the caller's context; return its result if it comes in time.

    A client's timeout bounds only each wait for the next bytes. A server that sends a byte now and then, or keeps a
    connection alive with blanks, would make the client wait for ever.

    Args:
        seconds: infinity for no bound.
        task: makes the request.
        without_thread: makes the same request on an event loop, if the caller runs on one; None if it needs a thread.

    Raises:
        AbandonedError: after the time.
    """
    if on_loop():
        return awaited(_cancelled_after(seconds, without_thread or partial(_on_worker, task)))
    if seconds == inf:
        return task()
    outcome = on_thread(task)
    try:
        return outcome.result(seconds)
    except TooLateError:
        if outcome.done():  # the task's own error
            raise
        raise _abandoned(seconds) from None


async def _cancelled_after(seconds: float, request: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with anyio.move_on_after(seconds):
        return await request()
    raise _abandoned(seconds)


async def _on_worker(task: Callable[[], T]) -> T:
    """Run the task on a thread of the event loop; if cancelled, do not wait for the thread."""
    alone = anyio.CapacityLimiter(1)  # the shared limit would make it wait for a thread while its time runs
    return await anyio.to_thread.run_sync(task, abandon_on_cancel=True, limiter=alone)


def _abandoned(seconds: float) -> AbandonedError:
    return AbandonedError(f"no whole reply within {seconds:.1f} s")


def on_thread(task: Callable[[], T]) -> Future[T]:
    """Run the task on its own thread, in a copy of the caller's context; return its future.

    Under ``dspy.streamify`` the thread belongs to the event loop, as the caller's does: DSPy can send an LM's pieces
    only from such a thread. If the caller's does not, the task still runs, but its LM's pieces are not sent.
    """
    outcome = Future[T]()
    run = partial(copy_context().run, _into, outcome, task)
    if dspy.settings.send_stream is not None:
        with suppress(RuntimeError):  # the caller's thread is the user's own
            anyio.from_thread.run_sync(_on_loop, run, outcome)
            return outcome
    threading.Thread(target=run, name="questree", daemon=True).start()
    return outcome


_on_loops: set[asyncio.Future[None]] = set()


def _on_loop(run: Callable[[], None], outcome: Future[Any]) -> None:
    """Start a thread of the running event loop; it counts against no limit, since the caller waits for it."""
    alone = anyio.CapacityLimiter(1)
    thread = asyncio.ensure_future(anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=alone))
    _on_loops.add(thread)
    thread.add_done_callback(_on_loops.discard)
    thread.add_done_callback(lambda _: outcome.cancel())  # in case the loop ends before the thread begins


def _into(outcome: Future[T], task: Callable[[], T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(task())
    except BaseException as error:
        outcome.set_exception(error)
