"""What every optimizer is given, what it gives, and what we change in DSPy while it works."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import dspy
from pydantic import BaseModel, ConfigDict

from ...common.errors import QuestreeError
from ...lm.guard import complete_demonstrations
from ...lm.policy import RunPolicy
from ...lm.retries import LONGEST_WAIT
from ...programs import Program
from ...programs.program import signature_names
from ...programs.states import members_of
from ..trainings import Trainings
from ..verdicts import Verdicts

logger = logging.getLogger(__name__)

PATIENCE = 1_000_000  # DSPy gives up, and loses everything, at ten errors; we count failures ourselves

_LOGGERS = ("dspy", "optuna", "gepa")
_ABSENT = object()


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
        trainings: of the LM, for an optimizer that trains it.
    """

    verdicts: Verdicts
    trainset: list[dspy.Example]
    valset: list[dspy.Example]
    seed: int = 0
    concurrency: int = 4
    prompt_lm: dspy.BaseLM | None = None
    teacher: Program | None = None
    trainings: Trainings = field(default_factory=Trainings)


class Optimizer(BaseModel):
    """An optimizer and its settings, which are saved with what it made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    compares: ClassVar[bool] = False
    """Whether it compares candidates on validation questions; otherwise all questions are for training."""
    trains: ClassVar[bool] = False
    """Whether it trains the LM. What `make` returns then has, on its predictors, the LM that it is to be asked with."""

    def check(self, program: Program, policy: RunPolicy) -> None:
        """Check that the program can be compiled with the configured LM, before anything is asked.

        Raises:
            QuestreeError: if not.
        """

    def compile(self, student: Program, job: Job) -> Program:
        """Return a compiled copy of the student. Meanwhile DSPy is quiet, patient, and bounded in its waits.

        Raises:
            QuestreeError: if what was made is no copy of the student.
        """
        with _in_turn(), quiet(), bounded_waits(), dspy.context(max_errors=PATIENCE, num_threads=job.concurrency):
            program = self._checked(self.make(student, job), student)
        offered = sum(len(predictor.demos) for predictor in program.predictors())
        for predictor in program.predictors():
            predictor.demos = complete_demonstrations(predictor)
        if job.verdicts.asked and not job.verdicts.accepted:
            logger.warning("No answer of %s was good enough to learn from: %s", student.name, job.verdicts.told())
        elif offered and not any(predictor.demos for predictor in program.predictors()):
            told = "No row of the task holds all fields of a prompt of %s: it has no demonstrations. Try %s."
            logger.warning(told, program.name, "annotated-few-shot")
        return program

    def _checked(self, made: Any, student: Program) -> Program:
        """Return what was made, if it is a program with the student's predictors, or is made of such ones."""
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


# DSPy has no setting for any of this, so its attributes are replaced, and restored at the end

_turn = threading.RLock()


@contextmanager
def _in_turn() -> Iterator[None]:
    """Let one optimizer of the process work at a time: what is replaced in DSPy holds for all threads."""
    if not _turn.acquire(blocking=False):
        logger.warning("Another compilation of this process is at work; this one waits for it to end.")
        _turn.acquire()
    try:
        yield
    finally:
        _turn.release()


@contextmanager
def bounded_waits() -> Iterator[None]:
    """Keep DSPy from asking a slow question twice, and from waiting as long as a server likes.

    ``dspy.Evaluate`` and ``dspy.Parallel``, which every optimizer uses, begin a question anew if it has run for 120
    seconds and three or fewer are left (``ParallelExecutor``); it is paid for again, and after 120 seconds more once
    again. We end a question by its deadline. And where an optimizer asks an LM itself, DSPy's client waits as long
    as ``Retry-After`` says, which may be a day.
    """
    from dspy.clients import execution
    from dspy.utils.parallelizer import ParallelExecutor

    made, delay = ParallelExecutor.__init__, execution._delay

    def patient(executor: Any, *args: Any, **how: Any) -> None:
        made(executor, *args, **how)
        executor.timeout = 0

    def bounded(error: Exception, attempt: int) -> float:
        return min(float(delay(error, attempt)), LONGEST_WAIT)

    with replaced(ParallelExecutor, "__init__", patient), replaced(execution, "_delay", bounded):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Keep DSPy's prints, progress bars and log messages off the screen; errors are still logged.

    Its teleprompters call ``print`` and ``tqdm`` whatever their settings are. The screen belongs to the caller.
    """
    from dspy.propose import dataset_summary_generator, grounded_proposer
    from dspy.propose import utils as proposing
    from dspy.teleprompt import bootstrap, random_search, teleprompt_optuna, utils
    from tqdm import tqdm  # type: ignore[import-untyped]

    made = tqdm.__init__

    def hidden(bar: Any, *args: Any, **how: Any) -> None:
        made(bar, *args, **{**how, "disable": True})

    with ExitStack() as stack:
        for module in (
            *(bootstrap, random_search, teleprompt_optuna, utils),
            *(proposing, grounded_proposer, dataset_summary_generator),
        ):
            stack.enter_context(replaced(module, "print", lambda *words, **how: None))
        stack.enter_context(replaced(tqdm, "__init__", hidden))
        for name in _LOGGERS:
            stack.enter_context(_only_errors(logging.getLogger(name)))
        yield


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of a class or module, and restore it at the end, also if it was absent before."""
    before = vars(owner).get(name, _ABSENT)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextmanager
def _only_errors(logger: logging.Logger) -> Iterator[None]:
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
