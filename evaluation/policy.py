"""A run's policy: how much at once, how long, how often, for how much, and when to give up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field

from ..common.errors import QuestreeError
from ..lm.failure import Failure
from ..lm.ledger import Spent
from ..lm.limits import Limits

HOPELESS = frozenset({"auth", "unreachable", "refused", "server", "error", "retrieval"})
"""Causes that the next question would share, when the first questions all failed of them."""


class OutOfBudgetError(QuestreeError):
    """The budget is spent; what was finished is kept."""


class RunPolicy(BaseModel):
    """How a run over many questions goes about it.

    A budget is for the whole run, with what was spent before it was interrupted; of a comparison, for all of its
    programs together. It is looked at after each question: questions that are on their way are finished and kept,
    so at most ``concurrency`` of them go beyond it. What the client's cache answers costs nothing.

    Attributes:
        concurrency: questions asked at the same time.
        timeout: seconds that one LM request may take; the LM's own where None, which is 120 if it has none.
        retries: of an LM request that got no usable reply (429, 5xx, a broken connection, a timeout); the LM's own
            where None, which is 3 for a `dspy.LM`.
        deadline: seconds that a question may take; one that takes longer fails. None for no end.
        window: tokens that a prompt and its reply may have together; where None, what DSPy knows of the model.
        max_failures: the run stops when more questions than this have failed; None for never.
        hopeless_after: the run stops when its first so many questions have all failed for a reason that the
            others would share: no LM at the address, a wrong key, a retriever that cannot be had.
        max_calls: budget of LM calls; None for no bound, as for the other two.
        max_tokens: budget of tokens, of prompts and replies together.
        max_cost: budget in US dollars, where the client knows the model's price.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: int = Field(default=4, ge=1)
    timeout: float | None = Field(default=None, gt=0)
    retries: int | None = Field(default=None, ge=0)
    deadline: float | None = Field(default=1800, gt=0)
    window: int | None = Field(default=None, ge=1)
    max_failures: int | None = Field(default=None, ge=0)
    hopeless_after: int = Field(default=5, ge=1)
    max_calls: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)

    @property
    def limits(self) -> Limits:
        """What of it holds for each question."""
        return Limits(timeout=self.timeout, retries=self.retries, deadline=self.deadline, window=self.window)

    def over_budget(self, spent: Spent) -> str | None:
        """Which budget is used up, and by how much was spent; None while there is room in each."""
        used = {
            "max_calls": (spent.calls - spent.cached, self.max_calls, "{:,} LM calls"),
            "max_tokens": (spent.tokens_in + spent.tokens_out, self.max_tokens, "{:,} tokens"),
            "max_cost": (spent.cost, self.max_cost, "${:.2f}"),
        }
        for name, (amount, bound, told) in used.items():
            if bound is not None and amount >= bound:
                return f"the budget {name}={bound} is spent ({told.format(amount)})"
        return None

    def check(self, failures: Iterable[Failure | None], total: int) -> None:
        """Stop a run that should not go on.

        Args:
            failures: one for each question finished in this run; None for an answered one.
            total: questions of the run.

        Raises:
            QuestreeError: if the policy says so; names the causes.
        """
        finished = list(failures)
        failed = [failure for failure in finished if failure is not None]
        if self.max_failures is not None and len(failed) > self.max_failures:
            raise QuestreeError(
                f"{len(failed)} of {len(finished)} questions failed, more than max_failures={self.max_failures}: "
                f"{_told(failed)}. Put that right, or raise max_failures."
            )
        enough = len(finished) >= min(self.hopeless_after, total)
        if failed and enough and len(failed) == len(finished) and all(f.cause in HOPELESS for f in failed):
            raise QuestreeError(
                f"The first {len(failed)} questions all failed, and the others would too: {_told(failed)}. "
                "Check the LM's name, address and key, and the index; then run again."
            )

    def check_judged(self, failures: Mapping[str, int], asked: int) -> None:
        """Refuse what an optimizer made while the LM could not be had: it would be taken for a result.

        Args:
            failures: predictions that failed, by cause.
            asked: all predictions.

        Raises:
            QuestreeError: if half of them or more failed for such a reason.
        """
        hopeless = {cause: count for cause, count in failures.items() if cause in HOPELESS}
        if asked and 2 * sum(hopeless.values()) >= asked:
            told = ", ".join(f"{count} {cause}" for cause, count in hopeless.items())
            raise QuestreeError(
                f"Of {asked} questions asked in compilation {sum(hopeless.values())} failed ({told}), so what came of "
                "it says nothing. Check the LM and the index, and run again: answered LM calls come from the cache."
            )


def _told(failures: list[Failure]) -> str:
    """Each cause with its count and its first message."""
    counts = Counter(failure.cause for failure in failures)
    first = {failure.cause: failure.message for failure in reversed(failures)}
    return "; ".join(f"{count} {cause} ({first[cause]})" for cause, count in counts.most_common())
