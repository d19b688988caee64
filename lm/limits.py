"""The limits in force, and the time that a question has left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from .failure import CallFailedError
from .policy import Limits as Limits
from .scope import Scope, scope, scope_process, scoped

_NONE = Limits()

clock = time.monotonic


def limits() -> Limits:
    """Return the limits in force."""
    return scope().limits or _NONE


@contextmanager
def limited(new: Limits) -> Iterator[None]:
    """Set limits inside a block; a limit that is None stays as it was."""
    named = {name: value for name, value in new if value is not None}
    with scoped(limits=limits().model_copy(update=named)):
        yield


def limit_process(new: Limits) -> None:
    """Set the limits of the whole process, as ``dspy.configure`` sets its LM."""
    scope_process(Scope(limits=new))


@contextmanager
def deadline(seconds: float | None = None) -> Iterator[None]:
    """Begin a question, or a request of so many seconds; it has no more time than the question that it is part of."""
    with scoped(until=until(limits().deadline if seconds is None else seconds)):
        yield


def until(seconds: float | None) -> float:
    """Return when so many seconds are over, or the time of the question is: whichever ends first."""
    end = scope().until
    return end if seconds is None else min(end, clock() + seconds)


def time_left() -> float:
    """Return the seconds until the deadline of the question that is being asked; infinity without a deadline."""
    return scope().until - clock()


def check_deadline(before: str, wait: float = 0.0, because: str = "") -> None:
    """Fail the question if its time is over, or would be over after a wait.

    Args:
        before: what is about to begin.
        wait: seconds to wait before it begins.
        because: why it has to wait.

    Raises:
        CallFailedError: with the cause ``deadline``.
    """
    if time_left() <= wait:
        waiting = f" ({because}, and to wait {wait:.1f} s)" if because else ""
        raise CallFailedError("deadline", f"the question's time was over before {before}{waiting}")
