"""questree compare"""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..settings import RunSettings


def compare(
    settings: "RunSettings",
    programs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Programs' names, or compiled ones' folders, runs:/… or models:/…; the first is the baseline."
        ),
    ] = None,
    compiled: Annotated[
        list[str] | None,
        typer.Option(help="A compiled program to add: its folder, runs:/… or models:/…; repeat it for several."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Add every registered program.")] = False,
    metric: options.Metrics = None,
    judge: options.Judge = None,
    as_json: options.AsJson = False,
) -> None:
    """Score several programs on the same questions: a table with intervals, a page with plots.

    The same command goes on where it was interrupted.
    """
    from ..experiment import Experiment
    from ..programs import PROGRAMS
    from .report import comparison_bars, print_agreement, print_figures

    given = [*(programs or []), *(compiled or [])]
    twice = next((name for name in given if given.count(name) > 1), None)
    options.refuse((twice, f"{twice} is named more than once: name each program once"))
    with options.clear_stdout(as_json), comparison_bars() as on_progress:
        named = [*(programs or []), *(PROGRAMS if all_ else []), *(compiled or [])]
        if not named and "program" in settings.model_fields_set:
            named = [settings.program]
        comparison, folder = Experiment(settings).compare(
            named,
            metrics=metric,
            judge=judge,
            on_progress=on_progress,
        )
    if as_json:
        options.print_json(comparison.as_json())
    else:
        print_figures(comparison.table.lines, simulated=comparison.simulated)
        print_agreement(comparison.evaluations.values())
        typer.echo(
            f"page, with details: {folder / 'page.html'}\neach question: questree show {quote(f'{folder}/PROGRAM')}"
        )
    if comparison.stopped:
        from ..common.errors import QuestreeError

        raise QuestreeError(comparison.stopped)
