"""Several runs, one after the other: in one file, under one budget, each tracked within the run around all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import dspy

from ..lm.account import Account
from ..lm.limits import GivenUpError, OutOfBudgetError, RunPolicy
from ..programs import Program
from .evaluation import Evaluation
from .identity import lms_facts, run_identity
from .notebook_bar import notebook_bar
from .record_scores import ScoreFunction, metric_name
from .run import Progress, evaluate
from .run_file import WritableFile, writing
from .tracking import TrackedRun, Tracking


@contextmanager
def running_series(
    title: str,
    out: Path | None,
    kind: str,
    programs: Sequence[Program],
    about: Mapping[str, Any],
    policy: RunPolicy | None,
    tracking: Tracking,
) -> Iterator[tuple[WritableFile | None, TrackedRun]]:
    """Give the file of several runs, and the tracked run around them; they have one budget."""
    simulated = any(lms_facts(program)["simulated"] for program in programs)
    facts = {**about, "policy": (policy or RunPolicy()).model_dump(exclude_none=True)}
    with (
        nullcontext() if out is None else writing(out, kind) as file,
        tracking.run(title, facts, simulated=simulated) as tracked,
        Account(file).open(),
    ):
        yield file, tracked


def ask_each(programs: Iterable[str], ask: Callable[[str], None], results: Sized) -> str | None:
    """Ask one program after the other; return why some were not asked all questions, None if all were.

    A program that fails by itself is skipped. If the budget is spent, or the LM answers no program, the remaining ones
    are skipped too. If ``results`` is empty in the end, the error says what happened to each program.
    """
    told: list[str] = []
    for name in programs:
        try:
            ask(name)
        except (OutOfBudgetError, GivenUpError) as error:
            told.append(str(error))
            last = error
            if isinstance(error, OutOfBudgetError) or error.shared:
                break
    if told and not results:
        last.args = (" ".join(told),)
        raise last
    return " ".join(told) or None


@contextmanager
def told_of(run: str) -> Iterator[None]:
    """Put a run's name before the error that ends it: the budget is spent, or too many questions failed."""
    try:
        yield
    except (OutOfBudgetError, GivenUpError) as error:
        error.args = (f"{run}: {error}",)
        raise


def evaluate_tracked(
    title: str,
    program: Program,
    examples: Sequence[dspy.Example],
    metrics: Sequence[ScoreFunction],
    *,
    tracking: Tracking,
    task: str,
    policy: RunPolicy | None,
    **how: Any,
) -> Evaluation:
    """Evaluate a program, and track it as a run of this title; other arguments and errors are those of `evaluate`."""
    facts = run_identity(program, task=task) | {
        "metrics": [metric_name(metric) for metric in metrics],
        "policy": (policy or RunPolicy()).model_dump(exclude_none=True),
    }
    with tracking.run(title, facts, simulated=facts["lm"]["simulated"]) as tracked, tracked.traces():
        evaluation = evaluate(program, examples, metrics, task=task, policy=policy, **how)
        tracked.evaluation(evaluation, task)
    return evaluation


def named_progress(on_progress: Callable[[str, Progress], None] | None, name: str) -> Callable[[Progress], None]:
    """Return the function that reports the progress of one run by name; by default a bar in a notebook."""
    return notebook_bar(name) if on_progress is None else lambda progress: on_progress(name, progress)
