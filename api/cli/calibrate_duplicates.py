"""questree calibrate-duplicates"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings

SETTINGS = ("retriever", "out")


def calibrate_duplicates(
    settings: "RunSettings",
    check: Annotated[str, typer.Argument(help="'retriever', or a cross-encoder by name or folder.")],
    pairs: Annotated[
        Path, typer.Argument(help="TSV, CSV or JSONL with question1, question2, is_duplicate (Quora's form).")
    ],
) -> None:
    """Choose the threshold (by F1) from which two queries count as the same, and store it with the check.

    The threshold is chosen on one half of the pairs and scored on the other. A cross-encoder's folder keeps its own;
    else --out (default: a folder under duplicates/) becomes a folder that --duplicates takes.
    """
    from ..reader_experiments import ReaderExperiment
    from .report import counting_bars, print_points

    experiment = ReaderExperiment(settings.model_copy(update={"duplicates": check}))
    with counting_bars() as on_read:
        found = experiment.calibrate_duplicates(pairs, on_read=on_read)
    print_points(found, [n / 10 for n in range(1, 10)])
    echo(f"{len(found.readings)} pairs compared with {found.name}")
    if found.f1 is not None:
        echo(f"the other pairs: F1 {found.f1} at {found.chosen.theta:.3f}")
    echo(f"stored in {found.folder}, with threshold.png; use it with --duplicates {found.folder}")
