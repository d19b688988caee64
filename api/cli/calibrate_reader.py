"""questree calibrate-reader"""

from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..reader_experiments import Calibration
    from ..settings import RunSettings

SETTINGS = (
    *("task", "split", "limit", "seed", "lm", "api_base", "temperature", "adapter"),
    *("retriever", "concurrency", "max_calls", "max_tokens", "max_cost", "out"),
)


def calibrate_reader(
    settings: "RunSettings",
    reader: Annotated[str, typer.Argument(help="A reader's folder, a DPR reader by name, or 'lm'.")],
    test_split: Annotated[
        str, typer.Option(help="Split of the same tasks to score the new threshold on; 'none' for no such score.")
    ] = "test",
    value: Annotated[
        list[float] | None, typer.Option(help="A theta to show; repeat it. Default: -2 to 6, and the reader's own.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Choose a reader's threshold (theta) by F1 of "does this passage answer it", and store it with the reader.

    Each question is read with its own passage and with one that does not answer: the highest that --retriever finds,
    or another question's. A folder keeps its own threshold; for a reader by name and for the LM, --out (default: a
    folder under readers/) becomes a folder that --reader takes. A plot of the scores lies beside the threshold.
    """
    from ..reader_experiments import ReaderExperiment
    from .report import SIMULATED, counting_bars, list_scores

    experiment = ReaderExperiment(settings.model_copy(update={"reader": reader}))
    with options.clear_stdout(as_json), counting_bars() as on_read:
        found = experiment.calibrate(test_split=None if test_split == "none" else test_split, on_read=on_read)
    print_sweep(found, value, as_json=as_json)
    if as_json:
        return
    if found.scores is not None:
        simulated = f" ({SIMULATED})" if found.simulated else ""
        echo(f"{test_split}: {list_scores(found.scores)}{simulated}")
    echo(f"stored in {found.folder}, with theta.png; use it with --reader {found.folder}")


def print_sweep(found: "Calibration", thetas: list[float] | None = None, *, as_json: bool = False) -> None:
    """Print precision, recall and F1 at some thetas, at the reader's own and at the best."""
    from .report import points_of, print_points

    shown = thetas or [*map(float, range(-2, 7)), 1.5]
    if as_json:
        points = [{"which": which, **vars(point)} for which, point in points_of(found, shown)]
        facts = {"reader": found.name, "readings": len(found.readings), "failed": found.failed, "left_out": found.seen}
        options.print_as_json({**facts, "simulated": found.simulated, "points": points})
        return
    print_points(found, shown)
    failed = f", {found.failed} failed" if found.failed else ""
    echo(f"{len(found.readings)} passages read with {found.name}{failed}")
    if found.seen:
        echo(f"left out: {found.seen} questions on passages that it was trained on")
