"""The limits of a question, and of a run of many: time, retries, window, budget, and when to give up.

`limited` sets the limits of a question, and `deadline` begins its time; both stand in the scope of what runs inside.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..common.errors import QuestreeError, unknown_name
from ..common.text import dollars
from .models import facts_of, is_served
from .scope import Scope, scope, scope_process, scoped

if TYPE_CHECKING:  # the command line reads the fields below for its options, without DSPy
    from .failure import Failure
    from .spent import Spent

_OF_THE_LM = frozenset({"auth", "unreachable", "refused", "server"})
FATAL_CAUSES = _OF_THE_LM | {"error", "retrieval"}
"""Causes that the next question would share, when the first questions all failed for them."""
OUTSIDE = FATAL_CAUSES | {"rate-limit", "timeout", "deadline", "reader"}
"""Causes outside the question: they say nothing about the program, and the next question may still be answered."""

Deadline = Annotated[
    float | None,
    Field(gt=0, description="Seconds that a question may take. Checked before each LM call and each search."),
]


class OutOfBudgetError(QuestreeError):
    """The budget is spent; what was finished is kept."""


class GivenUpError(QuestreeError):
    """So many questions failed that a run was given up; what was finished is kept.

    Attributes:
        shared: whether all failed because of the LM, so that another program would fail as well.
    """

    def __init__(self, message: str, failed: Sequence[Failure]):
        super().__init__(message)
        self.shared = all(failure.cause in _OF_THE_LM for failure in failed)


class Limits(BaseModel):
    """The limits of every question; None leaves a limit as it is.

    A question's deadline is checked before each LM call and search. An LM request on its way gets only the time left.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        unknown = [name for name in given if name not in cls.model_fields] if isinstance(given, dict) else []
        if unknown and cls.model_config.get("extra") == "forbid":  # the settings of a command have more fields
            raise QuestreeError(unknown_name(f"field of {cls.__name__}", unknown[0], cls.model_fields))
        return given

    timeout: float | None = Field(default=None, gt=0)
    """Seconds that one LM request may take. Default: the LM's own, else 120."""
    retries: int | None = Field(default=None, ge=0)
    """How often to repeat an LM request that failed (429, 5xx, a broken connection, a timeout). Default: the LM's own,
    else 3."""
    deadline: Deadline = None
    window: int | None = Field(default=None, ge=1)
    """Tokens that a prompt and its reply may have together; passages that do not fit are left out. Default: what is
    known of the model."""


class RunPolicy(Limits):
    """How a run asks many questions.

    A budget is for the whole run: it counts what was spent before an interruption, and in a comparison the calls of
    all programs. It is checked after each question. Questions on their way are finished and kept, so at most
    ``concurrency`` of them go beyond the budget. Answers from the LM client's cache cost nothing.
    """

    deadline: Deadline = 1800
    concurrency: int = Field(default=4, ge=1)
    """Questions that are answered at the same time."""
    event_loop: bool = False
    """Ask all questions on one event loop, without a thread for each: for hundreds at the same time."""
    max_failures: int | None = Field(default=None, ge=0)
    """Stop when more questions than this have failed. Default: never."""
    give_up_after: int = Field(default=5, ge=1)
    """Stop when the first so many questions all failed for a reason that the others would share (a wrong key, no server
    at the address)."""
    max_calls: int | None = Field(default=None, ge=1)
    """Budget: LM calls, of all programs together. Default: no bound."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Budget: tokens of prompts and replies together. Default: no bound."""
    max_cost: float | None = Field(default=None, gt=0)
    """Budget: US dollars, where the model's price is known. Default: no bound."""

    @property
    def limits(self) -> Limits:
        """Return the part that holds for each question."""
        return Limits(**{name: getattr(self, name) for name in Limits.model_fields})

    def over_budget(self, spent: Spent) -> str | None:
        """Return which budget is used up, and how much was spent; None while there is room in each."""
        tokens, calls = spent.tokens_in + spent.tokens_out, spent.calls - spent.cached
        used = {
            "max_calls": (calls, self.max_calls, f"{calls:,} LM calls"),
            "max_tokens": (tokens, self.max_tokens, f"{tokens:,} tokens"),
            "max_cost": (spent.cost, self.max_cost, dollars(spent.cost)),
        }
        for name, (amount, bound, told) in used.items():
            if bound is not None and amount >= bound:
                return f"the budget {name}={bound} is spent ({told})"
        return None

    def unpriced(self, lm: Any, spent: Spent) -> str | None:
        """Return why a budget in dollars has no effect, as no price of the LM is known; None if it has one."""
        if self.max_cost is None or not is_served(lm) or spent.cost or not spent.tokens_out:
            return None
        if facts_of(str(lm.model)).get("output_cost_per_token") is not None:
            return None
        return f"max_cost bounds nothing, as no price of {lm.model} is known; give max_tokens or max_calls in its place"

    def check(self, failed: Sequence[Failure], finished: int, total: int, as_before: int = 0) -> None:
        """Raise if the run should stop.

        Args:
            failed: the failures of the questions finished in this attempt.
            finished: how many questions this attempt finished, answered ones included.
            total: all questions of the run, with those answered earlier.
            as_before: how many of the failed ones had also failed earlier, while others were answered.

        Raises:
            GivenUpError: too many questions failed, or all of the first ones did; names the causes.
        """
        if self.max_failures is not None and len(failed) > self.max_failures:
            raise GivenUpError(
                f"{len(failed)} of {finished} questions failed, more than max_failures={self.max_failures}: "
                f"{_list_causes(failed)}. Put that right, or raise max_failures.",
                failed,
            )
        enough = finished >= min(self.give_up_after, total)
        known = len(failed) == as_before  # old failures say nothing new about the other questions
        if failed and enough and not known and len(failed) == finished and all(f.cause in FATAL_CAUSES for f in failed):
            raise GivenUpError(
                f"The first {len(failed)} questions all failed, and the others would too: {_list_causes(failed)}. "
                "Check the LM's name, address and key, and the index; then run again.",
                failed,
            )

    def check_judged(self, failures: Mapping[str, int], asked: int) -> None:
        """Raise if too many of an optimizer's questions failed for outside causes, so that its program says nothing.

        Args:
            failures: predictions that failed, by cause.
            asked: all predictions.

        Raises:
            QuestreeError: half of them or more failed for such a cause.
        """
        outside = {cause: count for cause, count in failures.items() if cause in OUTSIDE}
        if asked and 2 * sum(outside.values()) >= asked:
            causes = ", ".join(f"{count} {cause}" for cause, count in outside.items())
            raise QuestreeError(
                f"Of {asked} questions asked in compilation {sum(outside.values())} failed ({causes}), so the result "
                "says nothing. Check the LM, its limits and the index, and run again: answered LM calls come "
                "from the cache."
            )


def _list_causes(failures: Sequence[Failure]) -> str:
    """Return each cause with its count and its first message."""
    counts = Counter(failure.cause for failure in failures)
    first = {failure.cause: failure.message for failure in reversed(failures)}
    return "; ".join(f"{count} {cause} ({first[cause]})" for cause, count in counts.most_common())


_NONE = Limits()

clock = time.monotonic


def limits() -> Limits:
    """Return the limits in force."""
    return scope().limits or _NONE


def limited(new: Limits) -> AbstractContextManager[None]:
    """Return a context with these limits; a limit that is None stays as it was."""
    named = {name: value for name, value in new if value is not None}
    return scoped(limits=limits().model_copy(update=named))


def limit_process(new: Limits) -> None:
    """Set the limits of the whole process, as ``dspy.configure`` sets its LM."""
    scope_process(Scope(limits=new))


def deadline(seconds: float | None = None) -> AbstractContextManager[None]:
    """Return a context with this deadline, by default that of the limits; it ends no later than the one around it."""
    return scoped(until=latest_end(limits().deadline if seconds is None else seconds))


def latest_end(seconds: float | None) -> float:
    """Return the time, by `clock`, at which these seconds or the question's deadline end, whichever is first."""
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
    from .failure import CallFailedError

    if time_left() <= wait:
        waiting = f" ({because}, and to wait {wait:.1f} s)" if because else ""
        raise CallFailedError("deadline", f"the question's time was over before {before}{waiting}")
