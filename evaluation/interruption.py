"""Ctrl-C: pressed once, a run stops when the questions on their way are finished; pressed twice, it stops at once."""

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
        wanted: whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._announced = False

    def announce(self, running: int) -> None:
        """Tell the user, once, how many questions the run waits for."""
        if not self._announced:
            self._announced = True
            logger.warning("Stopping: waiting for %d questions on their way. Ctrl-C again ends at once.", running)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Note the first Ctrl-C inside the block, so that nothing is torn in the middle; the second one raises.

    Python handles signals on the main thread only; on another thread this changes nothing.
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
