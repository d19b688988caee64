"""What was answered to a question: the one list of fields that predictions, records, pages, APIs and tables share."""

from __future__ import annotations

from typing import Any

import dspy
from pydantic import BaseModel

from ..lm.failure import Failure
from ..lm.spent import Spent
from ..retrieval import Passage
from .basis import Basis
from .tree import ReasoningTree


class Answered(BaseModel):
    """A question's answer, how it came about and what it took: a new field here is told everywhere.

    Attributes:
        answer: the short answer; empty if there is none.
        rests_on: what decides it (`questree.programs.basis`); None without an answer.
        final_content: the answer as a text with marks.
        references: what the marks cite: ``[n]`` is ``references[n-1]``.
        tree: the reasoning; None if the program went wrong before it told any.
        failure: why there is no answer; None if nothing went wrong.
        seconds: wall time of the question.
    """

    answer: str = ""
    rests_on: Basis | None = None
    final_content: str = ""
    references: tuple[Passage, ...] = ()
    tree: ReasoningTree | None = None
    failure: Failure | None = None
    spent: Spent = Spent()
    seconds: float = 0.0

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> Answered:
        """Return what a prediction says; what it lacks is as it is by default.

        Raises:
            ValueError: if a field of the prediction is of another type.
        """
        fields = {name: prediction.get(name) for name in Answered.model_fields}
        return Answered(**{name: value for name, value in fields.items() if value is not None})

    @property
    def answer_fields(self) -> dict[str, Any]:
        """Return the fields of `Answered` alone, without those that a record or a page adds."""
        return {name: getattr(self, name) for name in Answered.model_fields}


def as_fields(prediction: dspy.Prediction) -> dict[str, Any]:
    """Return a prediction as values that JSON can hold."""
    return Answered.of(prediction).model_dump(mode="json")
