"""What is changed in DSPy while an optimizer works.

DSPy has no setting for any of this, so its attributes are replaced, and restored at the end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dspy

from ...lm.retries import LONGEST_WAIT

_LOGGERS = ("dspy", "optuna", "gepa")
_ABSENT = object()

logger = logging.getLogger(__name__)

_turn = threading.RLock()


@contextmanager
def changed_dspy() -> Iterator[None]:
    """Let one optimizer of the process work at a time, with a DSPy that suits ours."""
    if not _turn.acquire(blocking=False):  # what is replaced holds for all threads
        logger.warning("Another compilation of this process is at work; this one waits for it to end.")
        _turn.acquire()
    try:
        with ExitStack() as stack:
            for owner, name, value in _changes():
                stack.enter_context(replaced(owner, name, value))
            for name in _LOGGERS:
                stack.enter_context(only_errors(logging.getLogger(name)))
            yield
    finally:
        _turn.release()


def _changes() -> Iterator[tuple[Any, str, Any]]:
    """Yield what is replaced: an object, the name of its attribute, and the new value."""
    from dspy.clients import execution
    from dspy.propose import dataset_summary_generator, grounded_proposer
    from dspy.propose import utils as proposing
    from dspy.teleprompt import bootstrap, random_search, utils
    from dspy.utils.parallelizer import ParallelExecutor
    from tqdm import tqdm  # type: ignore[import-untyped]

    # teleprompters print and show bars whatever their settings are; the screen belongs to the caller
    searches, proposers = (bootstrap, random_search, utils), (proposing, grounded_proposer)
    for module in (*searches, *proposers, dataset_summary_generator):
        yield module, "print", lambda *words, **how: None
    made_bar = tqdm.__init__
    yield tqdm, "__init__", lambda bar, *args, **how: made_bar(bar, *args, **{**how, "disable": True})
    yield dspy.BaseLM, "inspect_history", lambda *_, **how: None  # COPRO prints it

    # `dspy.Evaluate` and `dspy.Parallel` ask a question again, which is paid for again, if it has run for 120 seconds
    # and three or fewer are left; we end a question by its deadline
    made_executor = ParallelExecutor.__init__

    def patient(executor: Any, *args: Any, **how: Any) -> None:
        made_executor(executor, *args, **how)
        executor.timeout = 0

    yield ParallelExecutor, "__init__", patient

    # where an optimizer asks an LM itself, DSPy's client waits as long as `Retry-After` says, which may be a day
    delay = execution._delay
    yield execution, "_delay", lambda error, attempt: min(float(delay(error, attempt)), LONGEST_WAIT)

    # `dspy.BootstrapFewShot`, which many optimizers use, refuses a teacher with other instructions than the student,
    # as a compiled one may have; that the fields are the same was checked before
    def mapped(bootstrap: Any) -> None:
        both = (bootstrap.student, bootstrap.teacher)
        bootstrap.predictor2name = {id(one): name for program in both for name, one in program.named_predictors()}
        bootstrap.name2predictor = dict.fromkeys(bootstrap.predictor2name.values())

    yield dspy.BootstrapFewShot, "_prepare_predictor_mappings", mapped


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
def only_errors(logger: logging.Logger) -> Iterator[None]:
    """Let a library log nothing else in the block."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
