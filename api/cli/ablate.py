"""questree ablate"""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings


def ablate(
    settings: "RunSettings",
    over: Annotated[
        list[str], typer.Option(help="A setting of the program to vary; repeat it for every combination of several.")
    ],
    program: Annotated[str | None, typer.Argument(help="A program's name. Default: that of the settings.")] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(help="A value of the setting; repeat it. Default: every value, where its type lists them."),
    ] = None,
    metric: options.Metrics = None,
    set_: options.ProgramSettings = None,
    details: options.Details = False,
) -> None:
    """Score a program under several settings on the same questions, with paired differences to the first.

    What the program has by default is the first, if it is among the values. MLflow has all of them under one run. The
    same command goes on where it was interrupted.
    """

    from ..experiment import Experiment
    from .report import comparison_bars, print_comparison

    with comparison_bars() as on_progress:
        comparison, folder = Experiment(settings).ablate(
            program or settings.program,
            over=over,
            values=[options.read_value(one) for one in value] if value else None,
            metrics=metric,
            on_progress=on_progress,
            **options.named_values(set_, "--set"),
        )
    print_comparison(comparison, details=details)
    echo(f"each question: questree show {quote(f'{folder}/NAME')}")
    if comparison.stopped:
        from ..common.errors import QuestreeError

        raise QuestreeError(comparison.stopped)
