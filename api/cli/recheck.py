"""questree recheck"""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..settings import RunSettings

NO_SETTINGS = ("split", "limit", "leave_out", "tracking_uri", "experiment")


def recheck(
    settings: "RunSettings",
    artifact: Annotated[str, typer.Argument(help="The folder `program` that `questree compile` wrote.")],
) -> None:
    """Ask a compiled program its dev questions again, after an upgrade of DSPy, of the model or of the prompts.

    Show the score then and now, their paired difference, and the prompts that changed.
    """
    from ..experiment import Experiment
    from .report import print_recheck, progress_bar

    with progress_bar() as on_progress:
        found, folder = Experiment(settings).recheck(artifact, on_progress=on_progress)
    print_recheck(found)
    typer.echo(f"each question: questree show {folder}")
