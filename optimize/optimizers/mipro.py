"""Instructions and demonstrations, searched together."""

from __future__ import annotations

from typing import Any, Literal

import dspy
from pydantic import Field

from ...common.errors import QuestreeError
from ...programs import Program
from .base import PATIENCE, Demonstrating, Job


class Mipro(Demonstrating):
    """MIPROv2: instructions that the LM proposes, and demonstrations, searched together."""

    name = "mipro"
    compares = True
    auto: Literal["light", "medium", "heavy"] | None = "light"
    candidates: int | None = Field(default=None, ge=2)
    trials: int | None = Field(default=None, ge=1)
    minibatch_size: int = Field(default=35, ge=1)
    init_temperature: float = Field(default=1.0, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        if (self.auto is None) != (self.candidates is not None and self.trials is not None):
            raise QuestreeError("mipro takes either auto, or auto=None with both candidates and trials.")
        teleprompter = dspy.MIPROv2(
            metric=job.verdicts,
            prompt_model=job.prompt_lm,
            auto=self.auto,
            num_candidates=self.candidates,
            num_threads=job.concurrency,
            max_errors=PATIENCE,
            seed=job.seed,
            init_temperature=self.init_temperature,
            **self.counts(),
        )
        return teleprompter.compile(
            student,
            teacher=job.teacher,
            trainset=job.trainset,
            valset=job.valset,
            num_trials=self.trials,
            minibatch=self.minibatch_size < len(job.valset),
            minibatch_size=min(self.minibatch_size, len(job.valset)),
        )
