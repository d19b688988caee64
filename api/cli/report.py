"""What commands print of a run: its progress and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ..evaluation.comparison.comparison import Comparison
    from ..evaluation.evaluation import Evaluation
    from ..evaluation.run import Progress as RunProgress
    from ..metrics import Interval
    from ..optimize import Compiled, CompileProgress

SIMULATED = "simulated LM: these numbers say nothing about methods"


@contextmanager
def progress_bar(what: str = "questions") -> Iterator[Callable[[RunProgress], None]]:
    """A bar with questions done, calls, tokens and cost so far; what it yields is an ``on_progress``."""
    with comparison_bars() as on_progress:
        yield lambda progress: on_progress(what, progress)


@contextmanager
def compile_bars() -> Iterator[Callable[[CompileProgress], None]]:
    """A line for each stage of a compilation, with the best candidate so far; yields an ``on_progress``."""
    columns = (TextColumn("{task.description:>8}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=Console(stderr=True)) as bars:
        stages: dict[str, TaskID] = {}
        best = 0.0

        def on_progress(progress: CompileProgress) -> None:
            nonlocal best
            if progress.stage not in stages:
                stages[progress.stage] = bars.add_task(progress.stage, total=None, told="")
            task = stages[progress.stage]
            if progress.questions is not None:
                done, total = progress.questions.done, progress.questions.total
                bars.update(task, completed=done, total=total, told=f"{done}/{total} questions")
            if progress.candidate is not None:
                best = max(best, progress.candidate.score)
                told = f"candidate {progress.candidate.number}: {progress.candidate.score:.3f}, best {best:.3f}"
                bars.update(task, told=told)

        yield on_progress


@contextmanager
def comparison_bars() -> Iterator[Callable[[str, RunProgress], None]]:
    """A bar for each program, with what it spent, and one line for all of them; yields an ``on_progress``."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[spent]}"), console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}
        latest: dict[str, RunProgress] = {}

        def show(name: str, done: int, total: int, told: str) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total, spent="")
            bars.update(tasks[name], completed=done, total=total, spent=told)

        def on_progress(name: str, progress: RunProgress) -> None:
            latest[name] = progress
            show(name, progress.done, progress.total, _spent([progress]))
            if len(latest) > 1:
                runs = latest.values()
                show("so far", sum(run.done for run in runs), sum(run.total for run in runs), _spent(list(runs)))

        yield on_progress


def _spent(runs: list[RunProgress]) -> str:
    spent = [run.spent for run in runs]
    tokens = sum(one.tokens_in + one.tokens_out for one in spent)
    told = f"{sum(one.calls for one in spent)} calls, {tokens:,} tokens, ${sum(one.cost for one in spent):.2f}"
    failed = sum(run.failed for run in runs)
    return f"{told}, {failed} failed" if failed else told


def print_figures(lines: Sequence[Mapping[str, str]], *, simulated: bool) -> None:
    """Texts by heading, one line for each; in several tables where the screen is too narrow for one."""
    console = Console()
    widths = {heading: max(map(len, _parts(heading, lines))) for heading in lines[0]}
    for headings in _fitting(widths, console.width):
        table = Table(title=SIMULATED if simulated else None, box=box.SIMPLE_HEAD)
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place else "left", width=widths[heading])
        for line in lines:
            table.add_row(*(Text(line[heading]) for heading in headings))
        console.print(table)


def _fitting(widths: Mapping[str, int], screen: int) -> Iterator[list[str]]:
    """The headings of each table: all begin with the first one, and none is wider than the screen."""
    first, *others = widths
    chosen = [first]
    for heading in others:
        if len(chosen) > 1 and sum(widths[one] + 3 for one in [*chosen, heading]) + 3 > screen:
            yield chosen
            chosen = [first]
        chosen.append(heading)
    yield chosen


def _parts(heading: str, lines: Sequence[Mapping[str, str]]) -> list[str]:
    """What should not be broken: the words of the heading, and the cells."""
    return [*heading.split(), *(line[heading] for line in lines), ""]


def comparison_table(comparison: Comparison) -> Table:
    """One row for each program: its score, its difference to the first, and what else was measured."""
    table = Table(title=SIMULATED if comparison.simulated else None)
    evaluations = comparison.evaluations
    figures = {name: _figures(evaluation) for name, evaluation in evaluations.items()}
    columns = list({column: None for one in figures.values() for column in one})
    for heading in ("", columns[0], "difference", *columns[1:]):
        table.add_column(heading)
    for place, (name, one) in enumerate(figures.items()):
        cells = [one.get(column, "") for column in columns]
        table.add_row(name, cells[0], _signed(comparison.difference(name)) if place else "", *cells[1:])
    return table


def _signed(interval: Interval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def print_compiled(name: str, compiled: Compiled) -> None:
    """The scores before and after, and the gain with its interval."""
    console = Console()
    console.print(evaluation_table({f"{name}, uncompiled": compiled.before, f"{name}, compiled": compiled.after}))
    gain, spent = compiled.gain, compiled.compilation.spent
    console.print(
        f"gain {escape(_signed(gain))}, paired over {gain.n} questions; compiling took "
        f"{spent.calls} calls, {spent.tokens_in + spent.tokens_out:,} tokens, ${spent.cost:.2f}, "
        f"{compiled.compilation.seconds:.0f} s"
    )


def evaluation_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """One column for each evaluation; a title that says "simulated" where any of them is."""
    simulated = any(evaluation.simulated for evaluation in evaluations.values())
    table = Table(title=SIMULATED if simulated else None)
    for heading in ("", *evaluations):
        table.add_column(heading)
    figures = [_figures(evaluation) for evaluation in evaluations.values()]
    for name in {name: None for one in figures for name in one}:
        table.add_row(name, *(one.get(name, "") for one in figures))
    return table


def _figures(evaluation: Evaluation) -> dict[str, str]:
    """What there is to say of an evaluation, in the order in which it matters."""
    spent, n = evaluation.spent, evaluation.n
    nodes = sum(evaluation.sources.values())
    figures = {}
    for metric in evaluation.records[0].scores:
        score = evaluation.score_of(metric)
        figures[metric] = f"{score.mean:.3f} [{score.low:.3f}, {score.high:.3f}]"
    figures["questions"] = str(n)
    figures["failed"] = ", ".join(f"{count} {cause}" for cause, count in evaluation.failures.items()) or "0"
    figures |= {name: f"{value:.3f}" for name, value in evaluation.retrieval.items()}
    figures["LM calls a question"] = f"{spent.calls / n:.1f}"
    figures["words in, out a question"] = f"{spent.words_in / n:.0f}, {spent.words_out / n:.0f}"
    figures["seconds a question"] = f"{evaluation.seconds:.2f}"
    figures["cost in all"] = f"${spent.cost:.2f}"
    figures |= {f"nodes: {source}": f"{count / nodes:.0%}" for source, count in evaluation.sources.items()}
    return figures
