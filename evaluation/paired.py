"""The same questions, asked twice: before something changed, and after."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ..metrics import Interval, mcnemar, paired_interval
from .evaluation import Evaluation


@dataclass(frozen=True)
class Paired:
    """What the same questions scored then and score now.

    Attributes:
        before: the answers that were kept, scored by the metric of today.
        after: the answers of today.
    """

    before: Evaluation
    after: Evaluation

    @property
    def difference(self) -> Interval:
        """Return the score now less the score then, question by question, with its 95% interval."""
        return paired_interval(*self._scores, seed=self.after.seed)

    @property
    def p(self) -> float | None:
        """Return the p-value of McNemar's test; None if the scores are not 0 or 1."""
        return mcnemar(*self._scores)

    def figures(self) -> dict[str, Any]:
        """Return every figure of both evaluations, as their JSON has them, and the difference."""
        evaluations = {"before": json.loads(self.before.as_json()), "after": json.loads(self.after.as_json())}
        return {**evaluations, "difference": asdict(self.difference), "p": self.p}

    @property
    def _scores(self) -> tuple[list[float], list[float]]:
        first, second = ([r.scores[one.metric] for r in one.records] for one in (self.before, self.after))
        return first, second
