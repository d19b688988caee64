"""The limits in force, and the time that a question has left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

import dspy

from .failure import CallFailedError
from .policy import Limits as Limits

_SETTING = "questree_limits"  # a setting of DSPy's goes where its LM goes: onto DSPy's own threads as well

_NONE = Limits()
_until: ContextVar[float] = ContextVar("questree_deadline", default=inf)

clock = time.monotonic


def limits() -> Limits:
    """Return the limits in force."""
    return dspy.settings.get(_SETTING) or _NONE


@contextmanager
def limited(new: Limits) -> Iterator[None]:
    """Set limits inside a block; a limit that is None stays as it was."""
    named = {name: value for name, value in new if value is not None}
    with dspy.context(**{_SETTING: limits().model_copy(update=named)}):
        yield


def limit_process(new: Limits) -> None:
    """Set the limits of the whole process, as ``dspy.configure`` sets its LM."""
    dspy.configure(**{_SETTING: new})


@contextmanager
def deadline(seconds: float | None = None) -> Iterator[None]:
    """Begin a question, or a request of so many seconds: its time runs, or that of the question it is part of.

    Whichever ends first counts.
    """
    seconds = limits().deadline if seconds is None else seconds
    end = _until.get() if seconds is None else min(_until.get(), clock() + seconds)
    token = _until.set(end)
    try:
        yield
    finally:
        _until.reset(token)


def time_left() -> float:
    """Return the seconds until the deadline of the question that is being asked; infinity without a deadline."""
    return _until.get() - clock()


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
