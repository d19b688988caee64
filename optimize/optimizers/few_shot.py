"""Demonstrations from labelled questions, and from the program's own good answers."""

from __future__ import annotations

from typing import Any

import dspy
from pydantic import Field

from ...programs import Program
from ..composed import Majority
from .base import PATIENCE, Demonstrating, Job, Optimizer


class LabeledFewShot(Optimizer):
    """k training questions as they are; a predictor shows those fields of them that are its own."""

    name = "labeled-few-shot"
    k: int = Field(default=8, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        return dspy.LabeledFewShot(k=self.k).compile(student, trainset=job.trainset)


class BootstrapFewShot(Demonstrating):
    """The steps of training questions that were answered well."""

    name = "bootstrap-few-shot"
    max_rounds: int = Field(default=1, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        teleprompter = dspy.BootstrapFewShot(
            metric=job.verdicts, max_rounds=self.max_rounds, max_errors=PATIENCE, **self.counts()
        )
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset)


class BootstrapRandomSearch(Demonstrating):
    """Bootstraps from many shufflings of the training questions and keeps the best on the validation questions."""

    name = "bootstrap-random-search"
    compares = True
    max_rounds: int = Field(default=1, ge=1)
    candidates: int = Field(default=8, ge=1)
    stop_at_score: float | None = Field(default=None, ge=0, le=100)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        teleprompter = dspy.BootstrapFewShotWithRandomSearch(
            metric=job.verdicts,
            max_rounds=self.max_rounds,
            num_candidate_programs=self.candidates,
            num_threads=job.concurrency,
            stop_at_score=self.stop_at_score,
            max_errors=PATIENCE,
            **self.counts(),
        )
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset, valset=job.valset)


class Ensemble(BootstrapRandomSearch):
    """The best candidates of a random search, and the answer that most of them give."""

    name = "ensemble"
    size: int = Field(default=3, ge=2)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        best = super().make(student, job)
        ranked = [candidate["program"] for candidate in best.candidate_programs]
        return Majority(ranked[: self.size])
