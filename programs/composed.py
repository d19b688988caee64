"""Programs made of compiled ones: demonstrations chosen by question, and a majority of several."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import dspy
from pydantic import BaseModel, ConfigDict, field_validator

from ..metrics import normalise
from ..signatures import AnswerStyle
from .majority import winner
from .program import Program
from .tree import ReasoningTree

Demonstrations = dict[str, list[dict[str, Any]]]
"""Demonstrations by the predictor's name."""


class Lesson(BaseModel):
    """A training question that was answered well, and the demonstrations that it gave.

    Attributes:
        inputs: of the program when it was asked; ``question`` is one of them.
        demonstrations: by predictor.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: dict[str, str]
    demonstrations: Demonstrations

    @field_validator("inputs")
    @classmethod
    def _check_question(cls, inputs: dict[str, str]) -> dict[str, str]:
        if "question" not in inputs:
            raise ValueError("the question is missing")
        return inputs


class Composed(Program):
    """A program made of others of one kind. It is called as they are."""

    form: ClassVar[str]
    members: list[Program]

    def __init__(self, members: list[Program]):
        super().__init__(members[0].retriever, members[0].settings)
        for member in members:
            member._compiled = False  # else DSPy hides its predictors
        self.members = members
        self.reader, self.duplicates = members[0].reader, members[0].duplicates

    @property
    def name(self) -> str:  # type: ignore[override]
        """Return the name of the members."""
        return self.members[0].name

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Raise an error: only the members reason."""
        raise NotImplementedError


class NearestDemonstrations(Composed):
    """For each question, the demonstrations of the training questions nearest to it (KNN few-shot).

    DSPy's ``KNNFewShot`` bootstraps the neighbours anew for every question: k more runs of the program each time.
    Here every training question was bootstrapped once, in compilation, and a question only chooses among them.
    """

    form = "nearest"

    def __init__(self, program: Program, lessons: list[Lesson], k: int):
        super().__init__([program])
        self.lessons, self.k = lessons, k
        self.vectors = bag_of_words([lesson.inputs["question"] for lesson in lessons])

    def forward(
        self,
        question: str,
        answer_style: AnswerStyle = "short",
        watch: Callable[[ReasoningTree], None] | None = None,
        history: Sequence[str] = (),
    ) -> dspy.Prediction:
        """Answer as the member does, with the demonstrations of the nearest questions, the nearest last."""
        program = self.members[0].deepcopy()
        # an input that is no text fails as it does in the member
        nearest = [self.lessons[index] for index in self.neighbours(question)] if isinstance(question, str) else []
        for name, predictor in program.named_predictors():
            demonstrations = [d for lesson in reversed(nearest) for d in lesson.demonstrations.get(name, [])]
            predictor.demos = [*predictor.demos, *map(dspy.Example, demonstrations)]
        return program(question=question, answer_style=answer_style, watch=watch, history=history)

    def neighbours(self, question: str) -> list[int]:
        """Return the indices of the k lessons whose questions share most words with this one, the nearest first."""
        likeness = self.vectors @ bag_of_words([question])[0]
        return [int(index) for index in (-likeness).argsort(kind="stable")[: self.k]]


class Majority(Composed):
    """Gives the answer that most of several compiled programs give; of equally frequent ones, the first."""

    form = "majority"

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Return the prediction of the first member that gave the winning answer, with that member's tree.

        ``votes`` holds each member's answer. It is empty for a member that failed, for example because the question's
        time was over. An empty answer has no vote. The question fails if all members do.
        """
        predictions = [member(question=tree.question, answer_style=answer_style) for member in self.members]
        answered = [p for p in predictions if p.failure is None] or predictions
        chosen = answered[winner([p.answer for p in answered], answer_style)]
        tree.graft(chosen.tree)
        chosen.tree, chosen.votes = tree, ["" if p.failure else p.answer for p in predictions]
        return chosen


def bag_of_words(texts: list[str], dimensions: int = 4096) -> Any:
    """Return hashed word counts as unit vectors, one row for each text: the same on every machine, without a model."""
    import numpy as np

    vectors = np.zeros((len(texts), dimensions), dtype=np.float32)
    for row, text in zip(vectors, texts, strict=True):
        for word in normalise(text).split():
            row[zlib.crc32(word.encode()) % dimensions] += 1
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-9)
