"""What every optimizer is given, and what it gives."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import dspy
from pydantic import BaseModel, ConfigDict

from ...lm.call import complete_demonstrations
from ...programs import Program
from ..verdicts import Verdicts
from .patches import bounded_waits, quiet

PATIENCE = 1_000_000  # DSPy gives up, and loses everything, at ten errors; we count failures ourselves


@dataclass(frozen=True)
class Job:
    """What an optimizer is given beside the program.

    Attributes:
        verdicts: the metric, which here answers yes or no.
        trainset: what demonstrations are taken from.
        valset: what candidates are compared on; empty for an optimizer that compares none.
        seed: of everything random.
        concurrency: questions asked at the same time.
        prompt_lm: the LM that writes instructions, for an optimizer that wants some; the configured LM where None.
        teacher: the program that makes the demonstrations; the student where None.
    """

    verdicts: Verdicts
    trainset: list[dspy.Example]
    valset: list[dspy.Example]
    seed: int = 0
    concurrency: int = 4
    prompt_lm: dspy.BaseLM | None = None
    teacher: Program | None = None


class Optimizer(BaseModel):
    """An optimizer and its settings, which are saved with what it made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    compares: ClassVar[bool] = False
    """Whether it compares candidates on validation questions; otherwise all questions are for training."""

    def compile(self, student: Program, job: Job) -> Program:
        """Return a compiled copy of the student. Meanwhile DSPy is quiet, patient, and bounded in its waits."""
        with quiet(), bounded_waits(), dspy.context(max_errors=PATIENCE, num_threads=job.concurrency):
            program: Program = self.make(student, job)
        for predictor in program.predictors():
            predictor.demos = complete_demonstrations(predictor)
        return program

    @abstractmethod
    def make(self, student: Program, job: Job) -> Any:
        """Return a compiled copy of the student, as DSPy's teleprompter gives it."""
