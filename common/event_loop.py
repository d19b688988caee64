"""Plain code that waits on an event loop without holding it up, so that each method is written once and runs both ways.

`run` runs plain code in a greenlet. Where that code has to wait, it gives a coroutine to `awaited`: the event loop runs
it, and everything else, until the result is there. Called without `run`, the same code waits where it stands.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

T = TypeVar("T")


class _OnLoop(greenlet):
    """The greenlet of plain code that `run` runs; its parent is the one in which the event loop runs."""


async def run(task: Callable[[], T]) -> T:
    """Run plain code in this coroutine, and return its result; what it waits for with `awaited` is awaited here.

    The code sees and sets the context variables of this coroutine. If the coroutine is cancelled, the error is raised
    in the code, where it waits.
    """
    code = _OnLoop(task)
    code.gr_context = getcurrent().gr_context
    step = code.switch()
    while not code.dead:
        try:
            came = await step
        except BaseException:
            step = code.throw(*sys.exc_info())
        else:
            step = code.switch(came)
    return cast("T", step)


def on_loop() -> bool:
    """Return whether this code is run by `run`: it must not hold up the event loop, and may use `awaited`."""
    return isinstance(getcurrent(), _OnLoop)


def awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine gives, from plain code that `run` runs."""
    loop = getcurrent().parent
    assert loop is not None, "only code that `run` runs can wait for a coroutine"
    return cast("T", loop.switch(coroutine))


def no_coroutine(given: T, what: str) -> T:
    """Return what a function of somebody else's gave.

    Raises:
        TypeError: if it is a coroutine: nobody would wait for it, and what it does would be left out in silence.
    """
    if inspect.iscoroutine(given):
        given.close()
        raise TypeError(f"{what} is a coroutine function; give a plain function")
    return given


def off_loop(task: Callable[[], T]) -> T:
    """Run plain code that holds up its thread: on a thread of the event loop's pool, or here if no loop runs it."""
    if not on_loop():
        return task()
    import anyio.to_thread

    return awaited(anyio.to_thread.run_sync(task))
