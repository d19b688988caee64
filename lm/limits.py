"""How far a question may go: its time, the retries of its LM calls, and the window that prompts must fit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

import dspy
from pydantic import BaseModel, ConfigDict, Field

from .failure import CallFailedError

_SETTING = "questree_limits"  # a setting of DSPy's goes where its LM goes: onto DSPy's own threads as well

_until: ContextVar[float] = ContextVar("questree_deadline", default=inf)

clock = time.monotonic


class Limits(BaseModel):
    """What holds for every question that is asked inside `limited`.

    Attributes:
        timeout: seconds that one LM request may take; the LM's own where None.
        retries: of an LM request that got no usable reply from the server; the LM's own where None.
        deadline: seconds that a question may take; None for no end. Looked at before each call and search; an LM
            request that is on its way gets no more time than is left.
        window: tokens that a prompt and its reply may have together; None takes what is known of the model, if it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout: float | None = Field(default=None, gt=0)
    retries: int | None = Field(default=None, ge=0)
    deadline: float | None = Field(default=None, gt=0)
    window: int | None = Field(default=None, ge=1)


def limits() -> Limits:
    """Those in force."""
    return dspy.settings.get(_SETTING) or Limits()


@contextmanager
def limited(new: Limits) -> Iterator[None]:
    """Inside, the new limits hold; what they leave open is as it was."""
    named = {name: value for name, value in new if value is not None}
    with dspy.context(**{_SETTING: limits().model_copy(update=named)}):
        yield


def limit_process(new: Limits) -> None:
    """The limits from here on; for a command, as ``dspy.configure`` is for its LM."""
    dspy.configure(**{_SETTING: new})


@contextmanager
def deadline() -> Iterator[None]:
    """A question begins here: its time runs, or that of the question it is part of, whichever ends first."""
    seconds = limits().deadline
    end = _until.get() if seconds is None else min(_until.get(), clock() + seconds)
    token = _until.set(end)
    try:
        yield
    finally:
        _until.reset(token)


def time_left() -> float:
    """Seconds until the deadline of the question that is being asked; infinite where there is none."""
    return _until.get() - clock()


def check_deadline(before: str, wait: float = 0.0, because: str = "") -> None:
    """Fail the question if its time is over, or would be after a wait.

    Args:
        before: what is to be begun.
        wait: seconds that it has to wait for.
        because: why it has to.

    Raises:
        CallFailedError: with the cause ``deadline``.
    """
    if time_left() <= wait:
        waiting = f" ({because}, and to wait {wait:.1f} s)" if because else ""
        raise CallFailedError("deadline", f"the question's time was over before {before}{waiting}")
