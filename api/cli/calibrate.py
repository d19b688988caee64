"""questree calibrate-reader, questree calibrate-links"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from ..settings import RunSettings
from . import options
from .screen import SIMULATED, echo, print_figures, print_json

if TYPE_CHECKING:
    from ..optimize.theta import ThetaPoint
    from ..readers import Calibration


def calibrate_reader(
    settings: Annotated[
        RunSettings, "task split limit seed lm api_base temperature adapter retriever concurrency BUDGET out"
    ],
    reader: str,
    test_split: str = "test",
    as_json: options.AsJson = False,
) -> None:
    """Choose a reader's threshold (theta) by F1 of "does this passage answer it", and store it with the reader.

    Each question is read with its own passage and with one that does not answer: the highest that --retriever finds,
    or another question's. A folder keeps its own threshold; for a reader by name and for the LM, --out (default: a
    folder under readers/) becomes a folder that --reader takes.

    Args:
        reader: A reader's folder, a DPR reader by name, or 'lm'.
        test_split: Split of the same task to try the new threshold on; 'none' for no such figures.
    """
    from ..readers import Readers
    from .progress import progress_bars

    named = Readers(settings.model_copy(update={"reader": reader}))
    with progress_bars(as_json) as bars:
        found = named.calibrate(None if test_split == "none" else test_split, bars.count)
    points = _points(found, [*map(float, range(-2, 7)), 1.5])
    if as_json:
        facts = {"reader": found.name, "readings": len(found.readings), "failed": found.failed}
        shown = [{"which": which, **vars(point)} for which, point in points]
        print_json({**facts, "simulated": found.simulated, "points": shown})
        return
    _print_points(points, found.simulated)
    failed = f", {found.failed} failed" if found.failed else ""
    echo(f"{len(found.readings)} passages read with {found.name}{failed}")
    if (worth := found.held_out) is not None:
        simulated = f" ({SIMULATED})" if found.simulated else ""
        echo(f"{test_split}: precision {worth.precision:.3f}, recall {worth.recall:.3f}, F1 {worth.f1:.3f}{simulated}")
    echo(f"stored in {found.folder}; use it with --reader {found.folder}")


def calibrate_links(
    settings: Annotated[RunSettings, "limit seed retriever"],
    task: str,
    test_split: str = "test",
) -> None:
    """Train the choice of linked: on your own questions, and keep it beside the links, where it is used from then on.

    It takes minutes on one core; no LM is asked. --retriever is linked:INDEX.

    Args:
        task: A task, or a file of questions, with their gold passages.
        test_split: Split to measure the new choice on; it is trained on the others.
    """
    from ..data import load_task
    from ..retrieval import LinkedRetriever, open_retriever
    from ..retrieval.linked.calibration import calibrate

    linked = (settings.retriever or "").startswith("linked:")
    options.refuse((not linked, "name what is linked: --retriever linked:INDEX"))
    retriever = cast(LinkedRetriever, open_retriever(str(settings.retriever)))
    questions = load_task(task, limit=settings.limit, seed=settings.seed).questions
    choice, measured = calibrate(retriever, questions, test_split, seed=settings.seed)
    for name, (recall, chains) in measured.items():
        echo(f"{name}: recall@5 {recall}; the whole chain among 15 {chains}")
    choice.save(cast(Path, retriever.choice_file))
    echo(f"kept in {retriever.choice_file}; used with --retriever {settings.retriever}")


def _points(found: "Calibration", shown: Sequence[float]) -> list[tuple[str, "ThetaPoint"]]:
    """Return precision, recall and F1 at these thresholds, at the model's ``own`` and at the chosen one, ``best``."""
    from ..optimize.theta import theta_sweep

    points = theta_sweep(found.readings, sorted({*shown, found.own}))
    return [*(("own" if point.theta == found.own else "", point) for point in points), ("best", found.chosen)]


def _print_points(points: Sequence[tuple[str, "ThetaPoint"]], simulated: bool) -> None:
    figures = [{"": what, **{name: f"{value:.3f}" for name, value in vars(point).items()}} for what, point in points]
    print_figures(figures, simulated=simulated)
