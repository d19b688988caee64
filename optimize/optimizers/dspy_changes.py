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
    """Let this optimizer work alone, with a DSPy that is quiet, bounded in its waits, and takes any teacher."""
    with in_turn(), quiet(), bounded_waits(), any_instructions():
        yield


@contextmanager
def in_turn() -> Iterator[None]:
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
def any_instructions() -> Iterator[None]:
    """Let a teacher have other instructions than the student, as a compiled one may have.

    ``dspy.BootstrapFewShot``, which many optimizers use, refuses it. That the fields are the same was checked before.
    """

    def mapped(bootstrap: Any) -> None:
        both = (bootstrap.student, bootstrap.teacher)
        bootstrap.predictor2name = {id(one): name for program in both for name, one in program.named_predictors()}
        bootstrap.name2predictor = dict.fromkeys(bootstrap.predictor2name.values())

    with replaced(dspy.BootstrapFewShot, "_prepare_predictor_mappings", mapped):
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
        stack.enter_context(replaced(dspy.BaseLM, "inspect_history", lambda *_, **how: None))  # COPRO prints it
        for name in _LOGGERS:
            stack.enter_context(only_errors(logging.getLogger(name)))
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
def only_errors(logger: logging.Logger) -> Iterator[None]:
    """Let a library log nothing else in the block."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
