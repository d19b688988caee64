"""questree compare"""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings


def compare(
    settings: "RunSettings",
    programs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Programs' names, or compiled ones' folders, runs:/…, models:/… or hf://…; the first is the baseline."
        ),
    ] = None,
    compiled: Annotated[
        list[str] | None,
        typer.Option(
            help="A compiled program to add: its folder, runs:/…, models:/… or hf://…; repeat it for several."
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Add every registered program.")] = False,
    metric: options.Metrics = None,
    judge: options.Judge = None,
    details: options.Details = False,
    as_json: options.AsJson = False,
) -> None:
    """Score several programs on the same questions: a table with intervals, a page with plots.

    The same command goes on where it was interrupted.
    """
    from ..common.errors import QuestreeError
    from ..experiment import Experiment
    from ..programs import PROGRAMS
    from .report import comparison_bars, print_agreement, print_comparison

    given = [*(programs or []), *(compiled or [])]
    twice = next((name for name in given if given.count(name) > 1), None)
    lost = next((place for place in compiled or [] if ":" not in place and not Path(place).exists()), None)
    options.refuse((twice, f"{twice} is named more than once: name each program once"))
    options.refuse((lost and not twice, f"--compiled {lost}: there is no such folder; name a compiled program's"))
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
        print_comparison(comparison, details=details)
        print_agreement(comparison.evaluations.values())
        echo(f"page, with details: {folder / 'page.html'}\neach question: questree show {quote(f'{folder}/PROGRAM')}")
    if comparison.stopped:
        raise QuestreeError(comparison.stopped)
