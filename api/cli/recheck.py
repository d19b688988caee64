"""questree recheck"""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings

NO_SETTINGS = (
    *("split", "limit", "leave_out", "tracking_uri", "experiment", "on", "workers"),
    "allow_changed_signatures",  # they are what is looked at
)


def recheck(
    settings: "RunSettings",
    artifact: Annotated[str, typer.Argument(help="The folder `program` that `questree compile` wrote.")],
    as_json: options.AsJson = False,
) -> None:
    """Ask a compiled program its dev questions again, after an upgrade of DSPy, of the model or of the prompts.

    Show the score then and now, their paired difference, and the prompts that changed.
    """
    from ..experiment import Experiment
    from .report import print_recheck, progress_bar

    with options.clear_stdout(as_json), progress_bar() as on_progress:
        found, folder = Experiment(settings).recheck(artifact, on_progress=on_progress)
    if as_json:
        changed = {"prompts": found.prompts, "signatures": found.signatures, "versions": found.versions}
        options.print_as_json({**found.figures(), **changed})
        return
    print_recheck(found)
    echo(f"each question: questree show {quote(str(folder))}")
