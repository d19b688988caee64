"""Independent calls at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

import dspy

T = TypeVar("T")


def together(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run independent tasks at the same time, each on a thread; their results in the order of the tasks.

    A task runs in a copy of the caller's context: its LM and adapter, its ledger, its MLflow trace. What the
    tasks add to DSPy's own trace, from which demonstrations are made, is added in the order of the tasks as
    well, whichever ends first.

    Raises:
        Exception: that of the first task, in order, that failed; after all have ended.
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
    """The task's result, with the trace of its own calls."""
    trace: list[Any] = []
    with dspy.context(trace=None if dspy.settings.trace is None else trace):
        return task(), trace


def _add_to_trace(calls: list[Any]) -> None:
    trace = dspy.settings.trace
    if calls and trace is not None:
        trace.extend(calls)
        del trace[: max(0, len(trace) - dspy.settings.max_trace_size)]
