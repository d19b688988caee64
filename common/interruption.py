"""Ctrl-C, or SIGTERM: once, a run stops when the questions on their way are finished; twice, it stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from types import FrameType

Handler = Callable[[int, FrameType | None], None]
_INSTANT = 0.1  # seconds


def once_an_instant(handle: Handler) -> Handler:
    """Return a handler that passes on the first of several signals that come in the same instant.

    What started a command may pass on the Ctrl-C that the terminal sent to both. A second `KeyboardInterrupt` that
    comes while the first one unwinds can break the locks of Python's own threading and logging.
    """
    last = -inf

    def handle_first(number: int, frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, monotonic()
        if last - before > _INSTANT:
            handle(number, frame)

    return handle_first


@contextmanager
def stoppable() -> Iterator[list[int]]:
    """Give a list that gets the first Ctrl-C or SIGTERM inside the block, so that nothing is torn; the second raises.

    Python handles signals on the main thread only; on another thread this changes nothing.
    """
    signals = list[int]()

    def pressed(number: int, frame: FrameType | None) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    once = once_an_instant(pressed)
    before = {number: signal.signal(number, once) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
