"""What commands print of a run: its progress and its figures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TaskID
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.table import Table
from rich.text import Text

from ..common.text import dollars
from .screen import Screen

if TYPE_CHECKING:
    from ..evaluation import Comparison, Evaluation, Repeats
    from ..evaluation import Progress as RunProgress
    from ..evaluation.evaluation import Paired
    from ..metrics import Interval
    from ..optimize import Compiled, CompileProgress
    from ..optimize.readers import ReaderScores, ThetaPoint, TrainingProgress
    from ..optimize.recheck import Recheck
    from ..reader_experiments import Calibration
    from ..retrieval import Passage

SIMULATED = "simulated LM: these numbers say nothing about methods"

Count = Callable[[str, int, int], None]


def answer_text(content: str, references: Iterable[Passage], answer: str, *, simulated: bool) -> str:
    """Return a text with marks, what each mark stands for, and the answer."""
    cited = [f"[{n}] {passage.cited()}" for n, passage in enumerate(references, start=1)]
    return "\n".join([content, *cited, "", f"Answer: {answer}{'  (simulated)' if simulated else ''}"])


class _Bars(Progress):
    """Bars by name, and a text at the end of each."""

    def __init__(self, *columns: ProgressColumn | str):
        super().__init__(*columns, "{task.fields[text]}", console=Screen(stderr=True))
        self.named: dict[Hashable, TaskID] = {}

    def show(
        self, name: str, done: int | None = None, total: int | None = None, text: str = "", *, key: Hashable = None
    ) -> None:
        """Move a bar; add it first, if there is none of this key (the name, where None)."""
        key = key or name
        if key not in self.named:
            self.named[key] = self.add_task(name, total=total, text="")
        self.update(self.named[key], completed=done, total=total, text=text)


@contextmanager
def progress_bar(what: str = "questions") -> Iterator[Callable[[RunProgress], None]]:
    """Show a bar with questions done, calls, tokens and cost so far; yield an ``on_progress``."""
    with comparison_bars() as on_progress:
        yield lambda progress: on_progress(what, progress)


@contextmanager
def comparison_bars() -> Iterator[Callable[[str, RunProgress], None]]:
    """Show a bar for each program, with what it spent, and one for all of them; yield an ``on_progress``."""
    latest: dict[str, RunProgress] = {}
    with _Bars("{task.description}", BarColumn(), MofNCompleteColumn(), TimeLeft()) as bars:

        def on_progress(name: str, progress: RunProgress) -> None:
            latest[name] = progress
            bars.show(name, progress.done, progress.total, _spent([progress]))
            if len(latest) > 1:
                runs = list(latest.values())
                bars.show("so far", sum(run.done for run in runs), sum(run.total for run in runs), _spent(runs))

        yield on_progress


def _bill(calls: int, tokens: int, cost: float) -> str:
    """Return what was spent in words; dollars only if a price is known."""
    return f"{calls} calls, {tokens:,} tokens" + (f", {dollars(cost)}" if cost else "")


def _spent(runs: Sequence[RunProgress]) -> str:
    spent = [run.spent for run in runs]
    text = _bill(
        calls=sum(one.calls for one in spent),
        tokens=sum(one.tokens_in + one.tokens_out for one in spent),
        cost=sum(one.cost for one in spent),
    )
    failed = sum(run.failed for run in runs)
    return f"{text}, {failed} failed" if failed else text


@contextmanager
def compile_bars() -> Iterator[Callable[[CompileProgress], None]]:
    """Show a bar for each stage of a compilation, with the best candidate so far; yield an ``on_progress``."""
    most, best = 0, 0.0  # a score on few questions is easily a high one
    with _Bars("{task.description:>8}", BarColumn()) as bars:

        def on_progress(progress: CompileProgress) -> None:
            nonlocal most, best
            if progress.questions is not None:
                done, total = progress.questions.done, progress.questions.total
                bars.show(progress.stage, done, total, f"{done}/{total} questions")
            elif progress.candidate is not None:
                one = progress.candidate
                most, best = max((most, best), (one.questions, one.score))
                scored = f"{one.score:.3f} on {one.questions} questions"
                bars.show(progress.stage, text=f"candidate {one.number}: {scored}; best {best:.3f} on {most}")
            else:
                bars.show(progress.stage)

        yield on_progress


@contextmanager
def counting_bars() -> Iterator[Count]:
    """Show a bar for each thing that is counted; yield what takes its name, how many are done, and of how many."""
    with _Bars("{task.description}", BarColumn(), MofNCompleteColumn(), TimeLeft()) as bars:
        yield lambda what, done, total: bars.show(what, done, total, key=(what, total))


@contextmanager
def training_bars() -> Iterator[tuple[Count, Callable[[TrainingProgress], None]]]:
    """Show bars for what is counted and for the steps of a training; yield an ``on_mined`` and an ``on_progress``.

    Each look at the dev questions prints a line.
    """
    with _Bars("{task.description}", BarColumn(), MofNCompleteColumn()) as bars:

        def on_progress(progress: TrainingProgress) -> None:
            loss = f"loss {progress.loss:.3f}"
            pace = f"{progress.questions_per_second:.1f} questions/s, {progress.seconds_left / 60:.0f} min left"
            bars.show("steps", progress.step, progress.steps, f"{loss}, {pace}")
            if progress.scores:
                bars.console.print(f"step {progress.step}: {loss}; dev: {list_scores(progress.scores)}")

        yield lambda what, done, total: bars.show(what, done, total, key=(what, total)), on_progress


def print_figures(lines: Sequence[Mapping[str, str]], *, simulated: bool) -> None:
    """Print texts by heading, one line for each; in several tables where the screen is too narrow for one."""
    console = Screen()
    widths = {heading: max(map(len, _unbroken(heading, lines))) for heading in lines[0]}
    for headings in _fitting(widths, console.width, _telling_apart(lines)):
        table = Table(title=SIMULATED if simulated else None, box=box.SIMPLE_HEAD)
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place else "left", width=widths[heading], overflow="fold")
        for line in lines:
            table.add_row(*(Text(line[heading]) for heading in headings))
        console.print(table)


def _telling_apart(lines: Sequence[Mapping[str, str]]) -> int:
    """Return how many of the first columns tell the lines apart; one if no number of them does."""
    cells = [tuple(line.values()) for line in lines]
    counts = range(1, len(lines[0]))
    return next((count for count in counts if len({one[:count] for one in cells}) == len(cells)), 1)


def _fitting(widths: Mapping[str, int], screen: int, repeated: int) -> Iterator[list[str]]:
    """Yield the headings of each table: all begin with the first ones, and none is wider than the screen."""
    first, others = list(widths)[:repeated], list(widths)[repeated:]
    chosen = list(first)
    for heading in others:
        if len(chosen) > repeated and sum(widths[one] + 3 for one in [*chosen, heading]) + 3 > screen:
            yield chosen
            chosen = list(first)
        chosen.append(heading)
    yield chosen


def _unbroken(heading: str, lines: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what should not be broken: the words of the heading, and the cells."""
    return [*heading.split(), *(line[heading] for line in lines), ""]


def evaluation_table(evaluations: Mapping[str, Evaluation], *, details: bool = False) -> Table:
    """Return six rows, and a column for each evaluation; the title says "simulated" where any of them is.

    Args:
        evaluations: by the heading of their column.
        details: add the rows of the rest, and a column that explains each row.
    """
    simulated = any(evaluation.simulated for evaluation in evaluations.values())
    table = Table(title=SIMULATED if simulated else None, box=box.SIMPLE_HEAD)
    for heading in ("", *evaluations, *(["what it is"] if details else [])):
        table.add_column(heading, overflow="fold")
    figures = [_figures(one) | (_details(one) if details else {}) for one in evaluations.values()]
    for name in {name: None for one in figures for name in one}:
        cells = [name, *(one.get(name, "") for one in figures), *([_explained(name)] if details else [])]
        table.add_row(*map(Text, cells))
    return table


def print_evaluations(evaluations: Mapping[str, Evaluation], *, details: bool = False) -> None:
    """Print the table of evaluations, and what shows the rest."""
    console = Screen()
    console.print(evaluation_table(evaluations, details=details))
    if not details:
        console.print("what each row means, and the rest of the figures: --details", style="dim", soft_wrap=True)


def print_comparison(comparison: Comparison, *, details: bool = False) -> None:
    """Print a line for each program: its score and what it cost; with details every figure."""
    from ..evaluation.evaluation import FAILURES

    main = {"program", comparison.metric, "grounded", "p", "failed", "LM calls", "cost"}
    lines = [
        {name: cell for name, cell in line.items() if details or name in main or name.startswith("difference")}
        for line in comparison.table.lines
    ]
    print_figures(lines, simulated=comparison.simulated)
    if details:
        print_figures(comparison.table.details, simulated=comparison.simulated)
        for name in [name for line in (lines[0], comparison.table.details[0]) for name in line if name != "program"]:
            Screen().print(f"{name}: {_explained(name)}", highlight=False, soft_wrap=True)
        Screen().print(FAILURES, highlight=False, soft_wrap=True)
    else:
        Screen().print("every figure, and what each is: --details", style="dim", soft_wrap=True)


def print_agreement(evaluations: Iterable[Evaluation]) -> None:
    """Print how far a judge among the metrics agrees with cover-EM, over all the answers."""
    from ..evaluation.lm_judge import agreement
    from ..evaluation.records import by_judges

    records = [record for one in evaluations for record in one.records]
    for judge in dict.fromkeys(name for record in records for name in by_judges(record)):
        if (found := agreement(records, judge)) is not None:  # else no answer was judged
            Screen().print(f"{judge} agrees with cover-EM: {found!s}")


def print_repeats(repeats: Repeats) -> None:
    """Print the score of repeated runs, that of each run, and the variance within and between questions."""
    score, first = repeats.score, repeats.runs[0]
    figures = {
        first.metric: f"{score.mean:.3f} [{score.low:.3f}, {score.high:.3f}]",
        "questions": str(first.n),
        **{f"run {number}": f"{run.score.mean:.3f}" for number, run in enumerate(repeats.runs, start=1)},
        "variance within questions": f"{repeats.within:.3f}",
        "variance between questions": f"{repeats.between:.3f}",
        "failed": str(sum(sum(run.failures.values()) for run in repeats.runs)),
    }
    print_figures([{"": name, "value": value} for name, value in figures.items()], simulated=first.simulated)


def print_compiled(compiled: Compiled, *, details: bool = False) -> None:
    """Print the scores before and after, and the gain with its interval."""
    console = Screen()
    print_evaluations({"before": compiled.before, "after": compiled.after}, details=details)
    gain, calls, paid = compiled.gain, compiled.compilation.spent.calls, compiled.compilation.paid
    console.print(
        f"gain {_signed(gain)}, paired over {gain.n} questions; compiling took "
        f"{_bill(calls, paid.tokens_in + paid.tokens_out, paid.cost)}, {compiled.compilation.seconds:.0f} s"
    )
    questions = compiled.compilation.questions
    split = f"{questions['train']} to learn from"
    split += f", {questions['val']} to compare candidates" if questions["val"] else ""
    console.print(f"questions: {split}, {questions['dev']} to score before and after", soft_wrap=True)
    if compiled.compilation.lm is not None:
        console.print("what training the LM cost, its provider says", soft_wrap=True)
    console.print(f"changed: {compiled.compilation.changed}", soft_wrap=True)


def print_paired(evaluations: Mapping[str, Evaluation], paired: Paired) -> None:
    """Print the figures then and now, and the paired difference."""
    console = Screen()
    print_evaluations(evaluations)
    p = "" if paired.p is None else f"; p {paired.p:.3f} (McNemar, mid-p)"
    console.print(f"difference {_signed(paired.difference)}, paired over {paired.after.n} questions{p}")


def print_recheck(found: Recheck) -> None:
    """Print the scores then and now, their difference, and which versions and prompts changed."""
    console, after = Screen(), found.after
    print_paired({"then": found.before, "now": after}, found)
    console.print(f"{after.spent.cached} of {after.spent.calls} LM calls were answered from the cache of replies")
    for name, (then, now) in found.versions.items():
        console.print(f"{name}: {then}, now {now}")
    if found.signatures:
        console.print(f"signatures that changed in the code: {', '.join(found.signatures)}")
    if not found.prompts:
        console.print("prompts: none differs")
    for diff in found.prompts.values():
        console.print(diff, highlight=False, soft_wrap=True)


def _signed(interval: Interval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def _figures(evaluation: Evaluation) -> dict[str, str]:
    """Return the six figures that matter most."""
    spent, paid, n = evaluation.spent, evaluation.paid, evaluation.n
    cached = f", {paid.cached:,} of {paid.calls:,} calls from the cache" if paid.cached else ""
    cost = "$0.00" if paid.calls and paid.cached == paid.calls else dollars(paid.cost).replace("–", "no price known")
    return {
        evaluation.metric: f"{_with_interval(evaluation.score)}, n={n}",
        "grounded": _with_interval(evaluation.grounded),
        "failed": ", ".join(f"{count} {cause}" for cause, count in evaluation.failures.items()) or "0",
        "calls": f"{spent.calls / n:.1f} a question",
        "tokens": f"{(spent.tokens_in + spent.tokens_out) / n:,.0f} a question",
        "cost": f"{cost}{cached}",
    }


def _details(evaluation: Evaluation) -> dict[str, str]:
    """Return the other figures of an evaluation."""
    from ..evaluation.evaluation import ANSWERED, of_how_many

    spent, n, nodes = evaluation.spent, evaluation.n, sum(evaluation.sources.values())
    figures = {
        metric: f"{_with_interval(score)}{of_how_many(evaluation, metric)}"
        for metric, score in evaluation.others.items()
    }
    if evaluation.failures and evaluation.answered:
        figures[f"{evaluation.metric}, {ANSWERED}"] = _with_interval(evaluation.answered)
    found = {name: f"{value:.3f}{of_how_many(evaluation, name)}" for name, value in evaluation.retrieval.items()}
    figures |= found or {"recall": "–"}
    figures["words in, out"] = f"{spent.words_in / n:.0f}, {spent.words_out / n:.0f} a question"
    figures["seconds"] = f"{evaluation.seconds:.2f} a question"
    return figures | {f"nodes: {source}": f"{count / nodes:.0%}" for source, count in evaluation.sources.items()}


_EXPLAINED = {
    "difference": "question by question, with its 95% interval",
    "grounded": "the score, where only answers count whose deciding fact stands in a cited passage",
    "failed": "questions without an answer, by cause; each counts as wrong",
    "calls": "LM calls",
    "tokens": "of prompts and replies together",
    "cost": "of every LM request, also of stopped attempts and judges; what the cache answers is free",
    "answered alone": "the score of the questions that did not fail",
    "citation_precision": "share of the marks whose passage supports their sentence",
    "citation_recall": "share of the sentences with a mark that supports them",
    "skc": "facts in the answer that a cited passage supports",
    "amp": "share of the marks at the right fact",
    "recall@": "share of the gold passages among the first that were found",
    "recall kept": "share of the gold passages among those that the answer rests on",
    "recall": "nothing was searched, or no gold passages are known",
    "precision": "share of the passages that are gold",
    "documents a call": "passages for each LM call",
    "documents": "passages that the reasoning saw",
    "evidences": "passages that the program kept as evidence",
    "nodes": "share of the steps whose answer comes from there",
    "words": "of prompts, of replies",
    "rounds": "turns between the LM and the searches",
    "p": "chance of such a difference, or a larger one, between equal programs (McNemar, mid-p; Holm if several)",
    "seconds": "from question to answer",
}
"""What each row is; of a row that is not here, the first that stands in its name."""


def _explained(row: str) -> str:
    text = _EXPLAINED.get(row) or next((text for name, text in _EXPLAINED.items() if name in row and name != "p"), None)
    return text or "mean over the questions, with its 95% interval"


def _with_interval(interval: Interval) -> str:
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def list_scores(scores: ReaderScores) -> str:
    """Return a reader's scores in a line."""
    return f"EM {scores.em}, span F1 {scores.span_f1}, relevance F1 {scores.relevance_f1} at theta {scores.theta:.2f}"


def points_of(found: Calibration, shown: Sequence[float]) -> list[tuple[str, ThetaPoint]]:
    """Return precision, recall and F1 at these thresholds, at the model's ``own`` and at the chosen one, ``best``."""
    from ..optimize.readers import theta_sweep

    points = theta_sweep(found.readings, sorted({*shown, found.own}))
    return [*(("own" if point.theta == found.own else "", point) for point in points), ("best", found.chosen)]


def print_points(found: Calibration, shown: Sequence[float]) -> None:
    """Print precision, recall and F1 at these thresholds, at the model's own and at the chosen one."""
    lines = points_of(found, shown)
    figures = [{"": what, **{name: f"{value:.3f}" for name, value in vars(point).items()}} for what, point in lines]
    print_figures(figures, simulated=found.simulated)


def print_looks(history: Sequence[Mapping[str, float]]) -> None:
    """Print what each look at the dev questions found."""
    columns = {"mean_loss": "loss", "dev_em": "EM", "dev_span_f1": "span F1", "dev_relevance_f1": "relevance F1"}
    rows = [
        {"step": f"{look['step']:.0f}", **{heading: f"{look[key]:.3f}" for key, heading in columns.items()}}
        for look in history
    ]
    if rows:
        print_figures(rows, simulated=False)
