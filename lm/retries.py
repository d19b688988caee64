"""Waiting before an LM request is sent again: as the server asks, within bounds, or longer each time."""

from __future__ import annotations

import random
import time

from dspy.utils.exceptions import LMError

FIRST_WAIT = 1.0  # seconds; twice as long each time
LONGEST_WAIT = 60.0  # seconds; a server that asks for more is not obeyed: it may ask for a day

sleep = time.sleep


def wait_before(retry: int, error: LMError) -> float:
    """Seconds to wait before a retry (1 for the first) after this error.

    What the server's ``Retry-After`` says; without one, a backoff of which half is drawn, so that questions that
    failed together do not come back together.
    """
    asked: float | None = error.retry_after
    if asked is not None:
        return min(max(asked, 0.0), LONGEST_WAIT)
    backoff: float = min(FIRST_WAIT * 2 ** min(retry - 1, 16), LONGEST_WAIT)
    return backoff * (0.5 + random.random() / 2)  # of the network's timing, not of a result: it needs no seed
