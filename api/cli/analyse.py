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
    from ..evaluation.analyses import knowledge_sources

    stored = _stored(runs)
    _print(_lines(stored, lambda run: knowledge_sources(run.records)), as_json)


@app.command()
def helped(with_: With, without: Without, metric: Metric = None, as_json: options.AsJson = False) -> None:
    """Show the score of the questions where retrieval corrected or completed a node (S_IR), with and without it."""
    from ..evaluation.analyses import helped_by_retrieval

    one, other = _pair(with_, without)
    found = helped_by_retrieval(one.records, other.records, metric or one.metric, seed=one.seed)
    _print([_line(found, one, other)], as_json)


@app.command()
def misled(
    with_: With,
    without: Without,
    metric: Metric = None,
    right: Annotated[float, typer.Option(help="The score from which an answer counts as right.")] = 1.0,
    as_json: options.AsJson = False,
) -> None:
    """Show the share of questions that were right without retrieval and are wrong with it."""
    from ..evaluation.analyses import misled_by_retrieval

    one, other = _pair(with_, without)
    found = misled_by_retrieval(one.records, other.records, metric or one.metric, right=right, seed=one.seed)
    _print([_line(found, one, other)], as_json)


@app.command()
def steps(runs: Runs, metric: Metric = None, as_json: options.AsJson = False) -> None:
    """Show reasoning steps and score by the number of hops that a question needs."""
    from ..evaluation.analyses import steps_by_hops

    stored = _stored(runs)
    _print(_lines(stored, lambda run: steps_by_hops(run.records, metric or run.metric, seed=run.seed)), as_json)


@app.command()
def efficiency(runs: Runs, as_json: options.AsJson = False) -> None:
    """Show words in and out, rounds, LM calls, seconds, tokens and cost of a question."""
    from ..evaluation.analyses import efficiency as measure

    stored = _stored(runs)
    lines = _lines(stored, lambda run: [measure(run.records)])
    if not as_json:
        lines = [line | (dict.fromkeys(("tokens", "cost"), "part cached") if line["cached"] else {}) for line in lines]
    _print(lines, as_json)


@app.command()
def alpha(
    runs: Runs,
    value: Annotated[
        list[float] | None, typer.Option(help="An alpha; repeat it. Default: 0.1 to 0.6 in steps of 0.05.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show how many nodes of stored long answers each alpha contradicts, and how good the other answers are."""
    from ..evaluation.analyses import alpha_sweep

    stored = _stored(runs)
    alphas = value or [n / 20 for n in range(2, 13)]
    _print(_lines(stored, lambda run: alpha_sweep(run.records, alphas)), as_json)


def _stored(folders: Sequence[Path]) -> "list[StoredRun]":
    from ..evaluation.stored_runs import stored_runs

    return stored_runs(folders)


def _lines(runs: "Sequence[StoredRun]", analysis: "Callable[[StoredRun], Sequence[Any]]") -> list[dict[str, Any]]:
    """Return what is found in each run; say of which runs nothing can be, with the reason.

    Raises:
        QuestreeError: nothing is found in any run; names each.
    """
    lines, without = list[dict[str, Any]](), list[str]()
    for run in runs:
        try:
            lines += [{"run": run.name, **_line(line, run)} for line in analysis(run)]
        except QuestreeError as error:
            without.append(f"{run.name}: {error}")
    if not lines:
        raise QuestreeError("\n".join(without))
    for reason in without:
        logger.warning("%s", reason)
    return lines


def _pair(with_: Path, without: Path) -> "tuple[StoredRun, StoredRun]":
    (one, *more), (other, *others) = _stored([with_]), _stored([without])
    if more or others:
        raise QuestreeError("Give two single runs here: the one with retrieval, then the one without.")
    if retriever := other.part("retriever"):
        raise QuestreeError(
            f"The second run is to be without retrieval, and {without} searched ({retriever.get('name')}): give the "
            "run with retrieval first, then the one without."
        )
    return one, other


def _line(found: Any, *runs: "StoredRun") -> dict[str, Any]:
    """Return what was found, and whether one of the runs that it was found in is simulated."""
    return {**vars(found), "simulated": any(run.simulated for run in runs)}


def _print(lines: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(lines)
        return
    simulated = any(line["simulated"] for line in lines)
    shown = [{name: value for name, value in line.items() if name != "simulated"} for line in lines]
    cells = [{name.replace("_", " "): _cell(value) for name, value in line.items()} for line in shown]
    if len(cells) == 1:  # reads better from top to bottom
        cells = [{"": name, "value": value} for name, value in cells[0].items()]
    print_figures(cells, simulated=simulated)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}" if 0 < abs(value) < 0.001 else f"{value:.3f}"
    return str(value)
