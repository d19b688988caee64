"""questree ablate"""

from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..settings import RunSettings


def ablate(
    settings: "RunSettings",
    program: Annotated[str, typer.Argument(help="A program's name.")],
    over: Annotated[list[str], typer.Option(help="A setting to vary; of several, every combination.")],
    value: Annotated[
        list[str] | None,
        typer.Option(help="A value of the setting; repeat it. Default: all, where its type lists them."),
    ] = None,
    metric: options.Metrics = None,
    set_: options.ProgramSettings = None,
) -> None:
    """Score a program under several settings on the same questions: differences are paired, runs have one parent."""
    from ..experiment import Experiment
    from .report import comparison_bars, comparison_table

    with comparison_bars() as on_progress:
        comparison, folder = Experiment(settings).ablate(
            program,
            over=over,
            values=[options.read_value(one) for one in value] if value else None,
            metrics=metric,
            on_progress=on_progress,
            **options.named_values(set_, "--set"),
        )
    from rich.console import Console

    Console().print(comparison_table(comparison))
    typer.echo(f"each question: questree show {folder}/NAME")
