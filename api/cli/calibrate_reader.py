"""questree calibrate-reader"""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..reader_experiments import CalibratedReader
    from ..settings import RunSettings

SETTINGS = ("task", "split", "limit", "seed", "lm", "api_base", "retriever", "concurrency", "out")


def calibrate_reader(
    settings: "RunSettings",
    reader: Annotated[str, typer.Argument(help="A reader's folder, a DPR reader by name, or 'lm'.")],
    test_split: Annotated[
        str, typer.Option(help="Of the same tasks, to score the new threshold on; 'none' for no such score.")
    ] = "test",
) -> None:
    """Choose a reader's threshold (theta) by F1 of "does this passage answer it", and store it with the reader.

    Each question is read with its own passage and with one that does not answer: the highest that --retriever finds,
    or another question's. A folder keeps its own threshold; for a reader by name and for the LM, --out (by default one
    under readers/) becomes a folder that names it, to be given as --reader. The plot lies beside the threshold.
    """
    from ..reader_experiments import ReaderExperiment
    from .report import counting_bars

    experiment = ReaderExperiment(settings.model_copy(update={"reader": reader}))
    with counting_bars() as on_read:
        calibrated = experiment.calibrate(test_split=None if test_split == "none" else test_split, on_read=on_read)
    print_sweep(calibrated)
    if calibrated.scores is not None:
        from .report import SIMULATED, list_scores

        typer.echo(
            f"{test_split}: {list_scores(calibrated.scores)}" + (f" ({SIMULATED})" if calibrated.simulated else "")
        )
    typer.echo(f"stored in {calibrated.folder}, with theta.png; use it with --reader {calibrated.folder}")


def print_sweep(calibrated: "CalibratedReader", thetas: list[float] | None = None) -> None:
    """Precision, recall and F1 at some thetas, the reader's own among them, and the best."""
    from .report import print_points

    shown = thetas or [*map(float, range(-2, 7)), 1.5]
    print_points(calibrated.readings, calibrated.chosen, calibrated.own, shown, simulated=calibrated.simulated)
    failed = f", {calibrated.failed} failed" if calibrated.failed else ""
    typer.echo(f"{len(calibrated.readings)} passages read with {calibrated.name}{failed}")
    if calibrated.seen:
        typer.echo(f"left out: {calibrated.seen} questions on passages that it was trained on")
