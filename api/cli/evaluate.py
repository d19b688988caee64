"""questree evaluate"""

from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..settings import RunSettings


def evaluate(
    settings: "RunSettings",
    program: Annotated[
        str, typer.Argument(help="A program's name, or a compiled one's folder, runs:/… or models:/…")
    ] = "searchain",
    metric: options.Metrics = None,
    set_: options.ProgramSettings = None,
) -> None:
    """Ask a program every question of a split and score it.

    The same command goes on where it was interrupted.
    """
    from ..experiment import Experiment
    from .report import evaluation_table, progress_bar

    with progress_bar() as on_progress:
        evaluation, folder = Experiment(settings).evaluate(
            program, metrics=metric, on_progress=on_progress, **options.named_values(set_, "--set")
        )
    from rich.console import Console

    Console().print(evaluation_table({program: evaluation}))
    typer.echo(f"each question: questree show {folder}")
