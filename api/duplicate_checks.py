"""Calibration of duplicate checks, from what a user types."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.errors import QuestreeError
from .parts import build_duplicates
from .readers import Counted, folder_of
from .retrieval.calibrated import DuplicatesManifest, store, stored
from .settings import RunSettings

if TYPE_CHECKING:
    from .metrics import Interval
    from .optimize.readers import Reading, ThetaPoint


@dataclass(frozen=True)
class CalibratedDuplicates:
    """A duplicate check's threshold, and what it was chosen on.

    Attributes:
        name: of the check.
        folder: where the threshold is stored; name it as the check.
        readings: how alike the pairs are that it was chosen on.
        chosen: the threshold, and how well it tells these pairs apart.
        own: the threshold that the check had.
        f1: on the other half of the pairs; None where that has none.
    """

    name: str
    folder: Path
    readings: list[Reading]
    chosen: ThetaPoint
    own: float
    f1: Interval | None


def calibrate_duplicates_named(
    pairs: Path, settings: RunSettings, *, on_read: Counted = lambda what, done, total: None
) -> CalibratedDuplicates:
    """Choose the threshold of the settings' duplicate check on one half of the pairs, score it on the other, store it.

    Args:
        pairs: a file for `read_pairs`.
        settings: ``duplicates``, ``retriever`` where that compares, and ``out`` for a check that is no folder itself.
        on_read: called while pairs are compared.

    Raises:
        QuestreeError: the check or the pairs cannot be had, or there is nowhere to store the threshold.
    """
    from .optimize.readers import best_theta, plot_theta
    from .optimize.readers.question_pairs import compare_all, read_pairs
    from .optimize.readers.thresholds import relevance_interval

    check: Any = build_duplicates(settings)
    if check is None:
        raise QuestreeError("The check by words has no threshold: name a cross-encoder, or `retriever`.")
    folder = folder_of(settings.duplicates, settings.out, Path("duplicates"), DuplicatesManifest)
    found = read_pairs(pairs)
    compared = compare_all(check, found, on_progress=lambda done: on_read("pairs", done, len(found)))
    readings, others = (
        [reading for pair, reading in zip(found, compared, strict=True) if pair.held_out is held_out]
        for held_out in (False, True)
    )
    chosen = best_theta(readings)
    f1 = relevance_interval(others, chosen.theta) if others else None
    facts: dict[str, Any] = {"pairs": len(readings), "of": pairs.name, "f1": chosen.f1}
    if settings.duplicates == "retriever":
        facts["retriever"] = str(settings.retriever)
    if f1 is not None:
        facts["held_out"] = {"pairs": f1.n, "f1": f1.mean, "f1_low": f1.low, "f1_high": f1.high}
    before = stored(DuplicatesManifest, settings.duplicates) or DuplicatesManifest(
        kind="retriever" if settings.duplicates == "retriever" else "cross-encoder",
        model=None if Path(settings.duplicates).expanduser().is_dir() else settings.duplicates,
    )
    store(folder, before.model_copy(update={"threshold": chosen.theta, "calibration": facts}))
    plot_theta(folder / "threshold.png", readings, chosen, f"{check.name} on {len(readings)} pairs", x="threshold")
    return CalibratedDuplicates(check.name, folder, readings, chosen, check.threshold, f1)
