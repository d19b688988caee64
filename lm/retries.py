"""The wait before an LM request is sent again: as the server asks, within bounds, or longer each time."""

from __future__ import annotations

import asyncio
import random
import time

from dspy.utils.exceptions import LMError

from ..common.event_loop import awaited, on_loop

RETRIES = 3  # retries of a request, if neither the limits nor the LM name any: the default of `dspy.LM`
FIRST_WAIT = 1.0  # seconds; twice as long each time
LONGEST_WAIT = 60.0  # seconds, even if the server asks for more: it may ask for a day

sleep = time.sleep


def pause(seconds: float) -> None:
    """Wait, and let the event loop that runs this code go on meanwhile."""
    if on_loop():
        awaited(asyncio.sleep(seconds))
    else:
        sleep(seconds)


def wait_before(retry: int, error: LMError) -> float:
    """Return the seconds to wait before a retry (1 for the first) after this error.

    They are what the server's ``Retry-After`` says; without it, a backoff of which half is drawn at random, so that
    questions that failed together do not retry together.
    """
    asked: float | None = error.retry_after
    if asked is not None:
        return min(max(asked, 0.0), LONGEST_WAIT)
    backoff: float = min(FIRST_WAIT * 2 ** min(retry - 1, 16), LONGEST_WAIT)
    return backoff * (0.5 + random.random() / 2)  # it changes when a request is sent, not a result: no seed is needed
