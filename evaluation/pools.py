"""Pools that ask and score a run's questions: each on a thread, or all on one event loop."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from anyio.from_thread import start_blocking_portal

from ..common.event_loop import run

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_FOR_OTHERS, _FOR_A_QUESTION = 32, 2  # files and connections that may be open at the same time


def at_most(questions: int) -> int:
    """Return how many of so many questions may be asked at a time, by the files that may be open; warn if fewer."""
    if sys.platform == "win32":
        return questions
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return questions
    room = max((allowed - len(os.listdir("/dev/fd")) - _FOR_OTHERS) // _FOR_A_QUESTION, 1)
    if room < questions:
        said = "%d questions at a time, not %d: this process may have %d files and connections open (ulimit -n)."
        logger.warning(said, room, questions, allowed)
    return min(room, questions)


class Threads:
    """Runs each task on a thread, in a copy of its caller's context."""

    def __init__(self, most: int):
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="question")

    def start(self, task: Callable[[Item], Result], item: Item) -> Future[Result]:
        """Begin a task; return its future."""
        return self._threads.submit(copy_context().run, task, item)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Begin a task for each item; yield what they give, in the order of the items."""
        begun = [self.start(task, item) for item in items]
        try:
            yield from (one.result() for one in begun)
        finally:
            self.end(at_once=False)

    def end(self, *, at_once: bool) -> None:
        """Wait for the tasks on their way; ``at_once`` leaves them to themselves."""
        self._threads.shutdown(wait=not at_once, cancel_futures=True)


class EventLoop:
    """Does the same as `Threads` on one thread with an event loop, for any number of tasks."""

    def __init__(self) -> None:
        self._opened = start_blocking_portal()
        self._loop = self._opened.__enter__()

    def start(self, task: Callable[[Item], Result], item: Item) -> Future[Result]:
        """Begin a task; return its future."""
        return self._loop.start_task_soon(run, partial(task, item))

    def end(self, *, at_once: bool) -> None:
        """Wait for the tasks on their way; ``at_once`` cancels them."""
        if at_once:
            self._loop.call(self._loop.stop, True)
        self._opened.__exit__(None, None, None)


Pool = Threads | EventLoop
