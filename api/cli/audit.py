"""questree audit"""

from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings

SETTINGS = ("split", "limit", "seed", "retriever", "out")


def audit(
    settings: "RunSettings",
    task: Annotated[
        str | None, typer.Argument(help="Task by name, or a JSONL file of questions. Default: that of the settings.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show which questions of a task the corpus of an index can answer at all.

    The ids of the others are written to a file, which evaluate and compare take: --leave-out FILE.
    """
    from ..experiment import Experiment
    from .report import counting_bars, print_figures

    named = settings if task is None else settings.model_copy(update={"task": task})
    with options.clear_stdout(as_json), counting_bars() as on_progress:
        found, file = Experiment(named).audit(on_progress)
    if as_json:
        unanswerable = [asked.id for asked in found.unanswerable]
        told = {"passages": found.passages, "questions": len(found.questions), "unanswerable": unanswerable}
        options.print_as_json({**told, "file": file, "shares": found.shares})
        return
    lines = [
        {"stands in the corpus": name, "share": f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]", "of": str(one.n)}
        for name, one in found.shares.items()
    ]
    print_figures(lines, simulated=False)
    left, asked = len(found.unanswerable), len(found.questions)
    if not left:
        echo(f"No question is out of reach of these {found.passages:,} passages.")
        return
    echo(f"{found.passages:,} passages cannot answer {left} of {asked} questions; to leave them out:")
    echo(f"--leave-out {file}")
