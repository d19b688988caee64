"""What every optimizer is given, and what it gives."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import dspy
from pydantic import BaseModel, ConfigDict, Field

from ...programs import Program
from ..verdicts import Verdicts

PATIENCE = 1_000_000  # DSPy gives up, and loses everything, at ten errors; failures are counted by us


@dataclass(frozen=True)
class Job:
    """What an optimizer is given beside the program.

    Attributes:
        verdicts: the metric, boolean.
        trainset: what demonstrations are taken from.
        valset: what candidates are compared on; empty for an optimizer that compares none.
        seed: of everything random.
        concurrency: questions asked at the same time.
        prompt_lm: writes instructions, where an optimizer wants some; the program's own LM by default.
        teacher: makes the demonstrations, where another program than the student should.
    """

    verdicts: Verdicts
    trainset: list[dspy.Example]
    valset: list[dspy.Example]
    seed: int = 0
    concurrency: int = 4
    prompt_lm: dspy.BaseLM | None = None
    teacher: Program | None = None


class Optimizer(BaseModel):
    """An optimizer and its settings: frozen, and saved with what it made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    compares: ClassVar[bool] = False
    """Whether it compares candidates on validation questions; otherwise all questions are for training."""

    def compile(self, student: Program, job: Job) -> Program:
        """A compiled copy of the student."""
        program: Program = self.make(student, job)
        return program

    @abstractmethod
    def make(self, student: Program, job: Job) -> Any:
        """What DSPy's teleprompter makes of the student."""


class Demonstrating(Optimizer):
    """Settings that all optimizers of demonstrations share.

    Attributes:
        max_bootstrapped_demos: demonstrations a predictor, from training questions that were answered well.
        max_labeled_demos: how many of a predictor's demonstrations may be filled up with training questions as
            they are.
    """

    max_bootstrapped_demos: int = Field(default=4, ge=0)
    max_labeled_demos: int = Field(default=4, ge=0)

    def counts(self) -> dict[str, int]:
        """As DSPy names them."""
        return {
            "max_bootstrapped_demos": self.max_bootstrapped_demos,
            "max_labeled_demos": self.max_labeled_demos,
        }
