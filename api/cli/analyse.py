"""Analyse stored runs as the papers do. No LM is asked."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..common.errors import QuestreeError
from . import options
from .screen import print_figures, print_json

if TYPE_CHECKING:
    from ..evaluation.stored_runs import StoredRun

logger = logging.getLogger(__name__)

app = typer.Typer(help=__doc__, no_args_is_help=True)

Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders of evaluations; a comparison's stands for all in it.")
]
With = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the evaluation with retrieval.")]
Without = Annotated[
    Path, typer.Argument(metavar="WITHOUT", help="Folder of the same questions, answered without retrieval.")
]
Metric = Annotated[str | None, typer.Option(help="One of the stored scores. Default: the run's first.")]


@app.command()
def sources(runs: Runs, as_json: options.AsJson = False) -> None:
    """Show where the answers of the nodes come from: the LM, corrected, completed, unsolved."""
    _print_each(runs, as_json, lambda found, run: found.knowledge_sources(run.records))


@app.command()
def helped(with_: With, without: Without, metric: Metric = None, as_json: options.AsJson = False) -> None:
    """Show the score of the questions where retrieval corrected or completed a node (S_IR), with and without it."""
    _print_pair(with_, without, metric, as_json, "helped_by_retrieval")


@app.command()
def misled(
    with_: With,
    without: Without,
    metric: Metric = None,
    right: Annotated[float, typer.Option(help="The score from which an answer counts as right.")] = 1.0,
    as_json: options.AsJson = False,
) -> None:
    """Show the share of questions that were right without retrieval and are wrong with it."""
    _print_pair(with_, without, metric, as_json, "misled_by_retrieval", right=right)


@app.command()
def steps(runs: Runs, metric: Metric = None, as_json: options.AsJson = False) -> None:
    """Show reasoning steps and score by the number of hops that a question needs."""
    _print_each(runs, as_json, lambda found, run: found.steps_by_hops(run.records, metric or run.metric, seed=run.seed))


@app.command()
def efficiency(runs: Runs, as_json: options.AsJson = False) -> None:
    """Show words in and out, rounds, LM calls, seconds, tokens and cost of a question."""
    _print_each(runs, as_json, lambda found, run: [found.efficiency(run.records)])


def _print_each(folders: Sequence[Path], as_json: bool, analysis: "Callable[[Any, StoredRun], list[Any]]") -> None:
    """Print what an analysis finds in each run; say of which runs nothing can be found, with the reason."""
    from ..evaluation import analyses
    from ..evaluation.stored_runs import stored_runs

    rows, without = list[dict[str, Any]](), list[str]()
    for run in stored_runs(folders):
        try:
            rows += [{"run": run.name, **row, "simulated": run.simulated} for row in analysis(analyses, run)]
        except QuestreeError as error:
            without.append(f"{run.name}: {error}")
    if not rows:
        raise QuestreeError("\n".join(without))
    for reason in without:
        logger.warning("%s", reason)
    _print(rows, as_json)


def _print_pair(with_: Path, without: Path, metric: str | None, as_json: bool, analysis: str, **how: float) -> None:
    """Print what an analysis finds in a run with retrieval and one without."""
    from ..evaluation import analyses
    from ..evaluation.stored_runs import stored_runs

    (one, *more), (other, *others) = stored_runs([with_]), stored_runs([without])
    if more or others:
        raise QuestreeError("Give two single runs here: the one with retrieval, then the one without.")
    if retriever := other.part("retriever"):
        raise QuestreeError(
            f"The second run is to be without retrieval, and {without} searched ({retriever.get('name')}): give the "
            "run with retrieval first, then the one without."
        )
    found = getattr(analyses, analysis)(one.records, other.records, metric or one.metric, seed=one.seed, **how)
    _print([{**found, "simulated": one.simulated or other.simulated}], as_json)


def _print(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    cells = [{name.replace("_", " "): _cell(row, name) for name in row if name != "simulated"} for row in rows]
    if len(cells) == 1:  # reads better from top to bottom
        cells = [{"": name, "value": value} for name, value in cells[0].items()]
    print_figures(cells, simulated=any(row["simulated"] for row in rows))


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if value is None:
        return "part cached" if row.get("cached") and name in ("tokens", "cost") else "–"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}" if 0 < abs(value) < 0.001 else f"{value:.3f}"
    return str(value)
