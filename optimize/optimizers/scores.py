"""The scores of candidates: many questions at the same time, nothing printed, each asked once.

DSPy's loops show bars, and ask a question again, which is paid for again, if it has run for 120 seconds and three or
fewer are left. `dspy.Parallel` can be told not to; `dspy.Evaluate` and the loops of some optimizers cannot.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dspy
from dspy.evaluate.evaluate import EvaluationResult
from dspy.utils.callback import with_callbacks

_LIBRARIES = ("dspy", "optuna", "gepa")


def in_parallel(tasks: Sequence[tuple[Callable[[dspy.Example], Any], dspy.Example]], threads: int | None = None) -> Any:
    """Return what each function gives for its example; None where it raises an error."""
    ask = dspy.Parallel(num_threads=threads, access_examples=False, disable_progress_bar=True, timeout=0)
    return ask([*tasks])


class Scoring(dspy.Evaluate):  # a subclass, so that DSPy's callbacks are called for each candidate
    """Scores programs as `dspy.Evaluate` does.

    Attributes:
        traces: of the last program's questions, in their order; None for a question that raised an error.
    """

    @with_callbacks
    def __call__(self, program: dspy.Module, devset: list[dspy.Example] | None = None, **how: Any) -> EvaluationResult:
        """Return the score in percent, and each question with its prediction and its score.

        Args:
            program: is asked.
            devset: other questions than its own.
            how: other options of DSPy's optimizers; none of them changes a score.
        """

        def ask(example: dspy.Example) -> tuple[Any, Any, Any]:
            with dspy.context(trace=[]):
                prediction = program(**example.inputs())
                trace = [*dspy.settings.trace]
            return prediction, self.metric(example, prediction), trace

        examples = devset or self.devset
        outputs = in_parallel([(ask, example) for example in examples], self.num_threads)
        self.traces = [None if output is None else output[2] for output in outputs]
        scored = [(dspy.Prediction(), self.failure_score) if output is None else output[:2] for output in outputs]
        right = sum(score for _, score in scored)
        results = [(example, *pair) for example, pair in zip(examples, scored, strict=True)]
        return EvaluationResult(score=round(100 * right / len(scored), 2), results=results)


_quiet = threading.Lock()
_levels: dict[str, int] = {}
_at_work = 0


@contextmanager
def only_errors() -> Iterator[None]:
    """Let the libraries of optimizers log nothing but errors, until the last of several blocks has ended."""
    global _at_work
    with _quiet:
        if not _at_work:
            _levels.update((name, logging.getLogger(name).level) for name in _LIBRARIES)
        _at_work += 1
        for name in _LIBRARIES:
            logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    finally:
        with _quiet:
            _at_work -= 1
            if not _at_work:
                for name, level in _levels.items():
                    logging.getLogger(name).setLevel(level)
