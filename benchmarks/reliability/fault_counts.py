"""What came of asking questions of servers at fault."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import dspy

from questree.lm.failure import Failure


@dataclass
class FaultCounts:
    """What came of it.

    Attributes:
        faults: given by the server, by kind.
        questions: asked.
        answered: of them, those with an answer.
        failed: those with a failure, by cause.
        lost: those with neither, or that raised.
        mislabelled: failures whose cause is none of a fault that the question met, as ``program: fault -> cause``.
        differing: programs whose requests, as the server counted them, are not those that its questions tell of.
        late: questions that took longer than their deadline.
        requests: that the server saw.
        repeated: of them, those that got no reply and were sent again or given up.
    """

    faults: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    answered: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    mislabelled: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    requests: int = 0
    repeated: int = 0

    def __iadd__(self, other: FaultCounts) -> FaultCounts:
        """The sum of two."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    @property
    def tried(self) -> int:
        """Faults that were given."""
        return self.faults.total()

    def add(self, asked: str, prediction: dspy.Prediction, causes: set[str]) -> None:
        """Count a question that has been asked.

        Args:
            asked: which, and by what.
            prediction: what came of it.
            causes: those under which it may have failed, after what it met.
        """
        failure: Failure | None = prediction.failure
        self.questions += 1
        self.repeated += prediction.spent.failed
        if failure is not None:
            self.failed[failure.cause] += 1
            if failure.cause not in causes:
                self.mislabelled.append(f"{asked}: {failure}, and not {sorted(causes)}")
        elif prediction.answer is None:
            self.lost.append(f"{asked}: no answer, and no failure")
        else:
            self.answered += 1
