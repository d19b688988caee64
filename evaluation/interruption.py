"""Ctrl-C: once to stop when the questions on their way are finished, twice to stop at once."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)


class Stop:
    """Whether the user wants the run to stop.

    Attributes:
        wanted: after the first Ctrl-C.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._told = False

    def say(self, running: int) -> None:
        """Tell what is waited for; once."""
        if not self._told:
            self._told = True
            logger.warning("Stopping: waiting for %d questions on their way. Ctrl-C again ends at once.", running)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Inside, the first Ctrl-C is only noted, so that nothing is torn in the middle; the second raises.

    Python tells of signals on the main thread alone; elsewhere nothing is changed.
    """
    stop = Stop()

    def pressed(number: int, frame: FrameType | None) -> None:
        if stop.wanted:
            raise KeyboardInterrupt
        stop.wanted = True

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, pressed) or signal.default_int_handler
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
