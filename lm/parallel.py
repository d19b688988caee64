"""Calls that run at the same time, and calls that are abandoned when their time is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLateError
from contextvars import copy_context
from math import inf
from typing import Any, TypeVar

import dspy
from dspy.utils.exceptions import LMTimeoutError

T = TypeVar("T")


def together(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run independent tasks at the same time, each on a thread; return their results in the order of the tasks.

    A task runs in a copy of the caller's context: its LM and adapter, its ledger, its MLflow trace. DSPy's own trace,
    from which demonstrations are made, gets the calls in the order of the tasks as well, whichever ends first.

    Raises:
        Exception: that of the first task, in order, that failed; raised after all tasks have ended.
    """
    if len(tasks) < 2:
        return [task() for task in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        branches = [pool.submit(copy_context().run, _apart, task) for task in tasks]
    results = []
    for branch in branches:
        result, trace = branch.result()
        _add_to_trace(trace)
        results.append(result)
    return results


def _apart(task: Callable[[], T]) -> tuple[T, list[Any]]:
    """Run the task; return its result with the trace of its own calls."""
    trace: list[Any] = []
    with dspy.context(trace=None if dspy.settings.trace is None else trace):
        return task(), trace


def _add_to_trace(calls: list[Any]) -> None:
    trace = dspy.settings.trace
    if calls and trace is not None:
        trace.extend(calls)
        del trace[: max(0, len(trace) - dspy.settings.max_trace_size)]


class AbandonedError(LMTimeoutError):
    """A request whose time is over; the thread that reads its reply may still be running."""


def within(seconds: float, task: Callable[[], T]) -> T:
    """Run the task in a copy of the caller's context; return its result if it comes in time.

    A client's timeout bounds only each wait for the next bytes. A server that sends a byte now and then, or keeps a
    connection alive with blanks, would hold the client for ever.

    Args:
        seconds: infinity for no bound.
        task: makes the request.

    Raises:
        AbandonedError: after the time.
    """
    if seconds == inf:
        return task()
    outcome: Future[T] = Future()
    threading.Thread(target=copy_context().run, args=(_into, outcome, task), name="request", daemon=True).start()
    try:
        return outcome.result(seconds)
    except TooLateError:
        if outcome.done():  # the task's own error
            raise
        raise AbandonedError(f"no whole reply within {seconds:.1f} s") from None


def _into(outcome: Future[T], task: Callable[[], T]) -> None:
    try:
        outcome.set_result(task())
    except BaseException as error:
        outcome.set_exception(error)
