"""The base class of optimizers, and what each is given."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import dspy
from pydantic import BaseModel, ConfigDict

from ...common.errors import QuestreeError
from ...lm.guard import complete_demonstrations
from ...lm.limits import RunPolicy
from ...programs import Program
from ...programs.program import signature_names
from ...programs.states import members_of
from ..demonstrations import each_verdict_once
from ..verdicts import Verdicts
from .proposals import Proposals
from .scores import only_errors

logger = logging.getLogger(__name__)

PATIENCE = 1_000_000  # DSPy gives up, and loses everything, at ten errors; we count failures ourselves


@dataclass(frozen=True)
class Job:
    """What an optimizer is given beside the program.

    Attributes:
        verdicts: the metric: scores of candidates, and which answers are good enough to learn from.
        trainset: what demonstrations are taken from.
        valset: what candidates are compared on; empty for an optimizer that compares none.
        seed: of everything random.
        concurrency: questions asked at the same time.
        prompt_lm: the LM that writes instructions, for an optimizer that uses one; the configured LM where None.
        teacher: the program that makes the demonstrations; the student where None.
        proposals: the optimizer's own LM requests.
    """

    verdicts: Verdicts
    trainset: list[dspy.Example]
    valset: list[dspy.Example]
    seed: int = 0
    concurrency: int = 4
    prompt_lm: dspy.BaseLM | None = None
    teacher: Program | None = None
    proposals: Proposals = field(default_factory=Proposals)


class Optimizer(BaseModel):
    """An optimizer and its settings, which are saved with what it made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    compares: ClassVar[bool] = False
    """Whether it compares candidates on validation questions; otherwise all questions are for training."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """Which of ``teacher`` and ``prompt_lm`` it never asks, whatever its settings; `compile` refuses these."""

    def check(self, program: Program, policy: RunPolicy) -> None:
        """Check that the program can be compiled with the configured LM, before anything is asked.

        Raises:
            QuestreeError: if not.
        """

    def compile(self, student: Program, job: Job) -> Program:
        """Return a compiled copy of the student. Meanwhile DSPy logs only errors, and does not give up at ten of them.

        Raises:
            QuestreeError: if what was made is no copy of the student, or the LM gives the optimizer no usable reply.
        """
        # teleprompters and `dspy.Evaluate` take these from the settings
        patient = dspy.context(max_errors=PATIENCE, num_threads=job.concurrency)
        proposals = Proposals(self.name)
        with only_errors(), proposals.reported(), patient:
            program = self._checked(self.make(student, replace(job, proposals=proposals)), student)
        offered = sum(len(predictor.demos) for predictor in program.predictors())
        for predictor in program.predictors():
            predictor.demos = complete_demonstrations(predictor)
            predictor.demos = each_verdict_once(predictor)
        verdicts = job.verdicts
        if verdicts.asked and not verdicts.accepted and (verdicts.sought or not verdicts.best):
            logger.warning("No answer of %s was good enough to learn from: %s", student.name, verdicts.told())
        elif offered and not any(predictor.demos for predictor in program.predictors()):
            told = "No row of the task holds all fields of a prompt of %s: it has no demonstrations. Try %s."
            logger.warning(told, program.name, "annotated-few-shot")
        return program

    def _checked(self, made: Any, student: Program) -> Program:
        """Return what was made, if it is a program with the student's predictors, or one composed of such programs."""
        names = signature_names(student).keys()
        if isinstance(made, Program) and all(signature_names(one).keys() == names for one in members_of(made)):
            return made
        raise QuestreeError(
            f"{self.name} returned something of the type {type(made).__name__}, which is no copy of {student.name} "
            "with all its predictors: let `make` change a copy of the student, and return it."
        )

    @abstractmethod
    def make(self, student: Program, job: Job) -> Any:
        """Return a compiled copy of the student, as DSPy's teleprompter gives it."""
