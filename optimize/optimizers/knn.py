"""Demonstrations that are chosen anew for each question."""

from __future__ import annotations

from typing import Any

import dspy
from pydantic import Field

from ...common.errors import QuestreeError
from ...programs import Program
from ..composed import Lesson, NearestDemonstrations
from .base import PATIENCE, Job, Optimizer


class KnnFewShot(Optimizer):
    """The demonstrations of the k nearest training questions, chosen anew for each question."""

    name = "knn-few-shot"
    k: int = Field(default=3, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`. Each training question is bootstrapped once."""
        lessons = [lesson for example in job.trainset if (lesson := _lesson(student, example, job)) is not None]
        if not lessons:
            raise QuestreeError(
                f"No training question of {len(job.trainset)} was answered well, so there is nothing to learn from: "
                "give more of them, a better teacher, or a milder metric."
            )
        return NearestDemonstrations(student.reset_copy(), lessons, self.k)


def _lesson(student: Program, example: dspy.Example, job: Job) -> Lesson | None:
    """What one training question teaches; None where it was not answered well."""
    teleprompter = dspy.BootstrapFewShot(
        metric=job.verdicts, max_bootstrapped_demos=1, max_labeled_demos=0, max_errors=PATIENCE
    )
    taught = teleprompter.compile(student, teacher=job.teacher, trainset=[example])
    demonstrations = {name: part["demos"] for name, part in taught.dump_state().items() if part["demos"]}
    inputs = {key: str(value) for key, value in example.inputs().items()}
    return Lesson(inputs=inputs, demonstrations=demonstrations) if demonstrations else None
