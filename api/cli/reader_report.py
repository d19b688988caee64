"""What the commands on readers print: how far they are, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from .report import print_figures

if TYPE_CHECKING:
    from ..optimize.readers import ReaderScores, Reading, ThetaPoint, TrainingProgress


@contextmanager
def counting_bars() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each thing that is counted; what it yields takes its name, how many are done, and of how many."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[tuple[str, int], TaskID] = {}

        def on_counted(what: str, done: int, total: int) -> None:
            if (what, total) not in tasks:
                tasks[what, total] = bars.add_task(what, total=total)
            bars.update(tasks[what, total], completed=done)

        yield on_counted


@contextmanager
def training_bars() -> Iterator[tuple[Callable[[str, int, int], None], Callable[[TrainingProgress], None]]]:
    """Bars for the negatives, then one for the steps, with loss, pace and time left; a line for each look at dev."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TextColumn("{task.fields[told]}"), console=Console(stderr=True)) as bars:
        tasks: dict[tuple[str, int], TaskID] = {}

        def on_counted(what: str, done: int, total: int, told: str = "") -> None:
            if (what, total) not in tasks:
                tasks[what, total] = bars.add_task(what, total=total, told="")
            bars.update(tasks[what, total], completed=done, told=told)

        def on_progress(progress: TrainingProgress) -> None:
            pace = f"{progress.questions_per_second:.1f} questions/s, {progress.seconds_left / 60:.0f} min left"
            on_counted("steps", progress.step, progress.steps, f"loss {progress.loss:.3f}, {pace}")
            if progress.scores:
                bars.console.print(f"step {progress.step}: loss {progress.loss:.3f}; dev: {told(progress.scores)}")

        yield on_counted, on_progress


def told(scores: ReaderScores) -> str:
    """The scores in a line."""
    return f"EM {scores.em}, span F1 {scores.span_f1}, relevance F1 {scores.relevance_f1} at theta {scores.theta:.2f}"


def print_points(
    readings: Sequence[Reading], chosen: ThetaPoint, own: float, shown: Sequence[float], *, simulated: bool = False
) -> None:
    """A table of precision, recall and F1 at these thresholds, at the model's own and at the chosen one."""
    from ..optimize.readers import theta_sweep

    lines = [("own" if point.theta == own else "", point) for point in theta_sweep(readings, sorted({*shown, own}))]
    figures = [
        {"": what, **{name: f"{value:.3f}" for name, value in vars(point).items()}}
        for what, point in [*lines, ("best", chosen)]
    ]
    print_figures(figures, simulated=simulated)


def print_looks(history: Sequence[Mapping[str, float]]) -> None:
    """A table of what each look at the dev questions found."""
    columns = {"mean_loss": "loss", "dev_em": "EM", "dev_span_f1": "span F1", "dev_relevance_f1": "relevance F1"}
    rows = [
        {"step": f"{look['step']:.0f}", **{heading: f"{look[key]:.3f}" for key, heading in columns.items()}}
        for look in history
    ]
    if rows:
        print_figures(rows, simulated=False)
