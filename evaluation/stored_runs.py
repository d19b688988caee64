"""Runs as they stand on the disk, read again: their records, what they are about, and what was asked for them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.errors import QuestreeError
from ..common.json_files import parse_json, read_bytes, validate
from ..lm.exchanges import Exchange
from ..lm.ledger import Spent
from .evaluation import Evaluation
from .kept_exchanges import KeptExchanges
from .records import Record, scored_alone
from .run_folder import Evaluated, RunFolder, lines_of
from .run_manifest import read_manifest

logger = logging.getLogger(__name__)


def read_records(path: str | Path) -> list[Record]:
    """Return the records of the run in a folder with their scores, in the order in which questions were first asked.

    Of a question that was asked several times, the latest record is taken. A last line that a killed process left
    unfinished is passed over, with a warning.

    Raises:
        QuestreeError: if there is no run, or several; if any other line is damaged: names it.
    """
    folder = Path(path)
    if not (folder / "run.json").exists() and (inside := [one.name for one in _places(folder) if one != folder]):
        raise QuestreeError(f"{folder} holds the runs {', '.join(inside)}; give the folder of one of them.")
    return list(RunFolder(folder).records.values())


@dataclass(frozen=True)
class StoredRun:
    """The run of a program over questions, as it was stored.

    Attributes:
        name: unique among the runs that were read together.
        records: the latest of each question of the last evaluation, in its order; while there is none that ended, or
            an older version made it, of all questions, in the order in which they were first asked.
        identity: what the run is about: program, settings, LM, retriever (`run_identity`).
        folder: that it was read from.
        paid: what all calls took that were made for it; None if that is not known.
        metrics, seed: of the last evaluation; no metrics if that is not known.
        others: what the folder holds beside the records.
    """

    name: str
    records: tuple[Record, ...]
    identity: dict[str, Any]
    folder: Path = Path()
    paid: Spent | None = None
    metrics: tuple[str, ...] = ()
    seed: int = 0
    others: tuple[Record, ...] = ()

    @property
    def simulated(self) -> bool:
        """Return whether the simulated LM answered."""
        return bool(self.identity.get("lm", {}).get("simulated"))

    @property
    def metric(self) -> str:
        """Return the metric that the run was scored by first.

        Raises:
            QuestreeError: if no answer is scored yet.
        """
        scored = (name for record in self.records for name in record.scores)
        told = self.metrics or self.identity.get("metrics")  # older versions kept them there
        metric: str | None = next(iter(told or scored), None)
        if metric is None:
            raise self._unscored()
        return metric

    @property
    def evaluation(self) -> Evaluation:
        """Return what the scored answers add up to: while a run goes on, or if it was killed, some have no score yet.

        Raises:
            QuestreeError: if no answer is scored yet.
        """
        metric = self.metric
        scored = tuple(record for record in self.records if metric in record.scores)
        if not scored:
            raise self._unscored()
        shown = scored_alone(scored, self.metrics) if self.metrics else scored
        return Evaluation(metric, shown, self.simulated, self.seed, paid_for_all=self.paid)

    def _unscored(self) -> QuestreeError:
        return QuestreeError(f"No answer of the run {self.name} is scored yet; run the same evaluation again.")


def stored_runs(folders: Sequence[Path]) -> list[StoredRun]:
    """Return the runs in these folders; the folder of a comparison or an ablation stands for all runs in it.

    Raises:
        QuestreeError: if a folder holds no run, or a run is damaged or has no finished question.
    """
    runs: dict[str, StoredRun] = {}
    for folder in folders:
        for place in _places(folder):
            name = place.name or place.resolve().name  # of the working folder
            name = name if name not in runs else str(place)
            runs[name] = _stored_run(name, place)
    return list(runs.values())


def _stored_run(name: str, place: Path) -> StoredRun:
    kept, evaluated = RunFolder(place), _evaluated(place)
    ids = [id for id in dict.fromkeys(evaluated.questions if evaluated else kept.records) if id in kept.records]
    if not ids:
        raise QuestreeError(f"The run in {place} has no finished question yet.")
    if more := len(kept.records) - len(ids):
        said = "%s holds answers to %d more questions than its last evaluation had; that evaluation is shown."
        logger.warning(said, place, more)
    metrics = evaluated.metrics if evaluated else ()
    return StoredRun(
        name,
        tuple(_with_first(metrics, kept.records.pop(id)) for id in ids),
        read_manifest(place / "run.json"),
        place,
        kept.paid,
        tuple(metrics),
        evaluated.seed if evaluated else 0,
        others=tuple(kept.records.values()),
    )


def _evaluated(folder: Path) -> Evaluated | None:
    """Return what the last evaluation in a folder was over; None if none ended, or an older version made it.

    Raises:
        QuestreeError: if the file is damaged.
    """
    file = folder / "evaluated.json"
    try:
        return validate(Evaluated, parse_json(read_bytes(file)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        way = "run the same evaluation again, or delete the file to read all that the folder holds"
        raise QuestreeError(f"{file} is damaged ({problem}): {way}.") from problem


def _with_first(metrics: Sequence[str], record: Record) -> Record:
    """Return the record with the scores by these metrics ahead of others: a capsule tells its metric by that."""
    first = {name: record.scores[name] for name in metrics if name in record.scores}
    return record.model_copy(update={"scores": first | record.scores})


def read_exchanges(folder: Path) -> dict[str, list[Exchange]]:
    """Return what was asked for each question of a run when it was asked last; none of those of an older version.

    Raises:
        QuestreeError: if a line is damaged; names it.
    """
    return {id: kept.exchanges() for id, kept in kept_exchanges(folder).items()}


def kept_exchanges(folder: Path) -> dict[str, KeptExchanges]:
    """Return the same, packed.

    Raises:
        QuestreeError: if a line is damaged; names it.
    """
    return {line.id: line for line, _ in lines_of(folder / "exchanges.jsonl", KeptExchanges)}


def _places(folder: Path) -> list[Path]:
    if (folder / "records.jsonl").exists():
        return [folder]
    inside = runs_inside(folder)
    if not inside:
        raise QuestreeError(f"{folder} holds no run; give the folder of an evaluation, comparison or ablation.")
    return inside


def runs_inside(folder: Path) -> list[Path]:
    """Return the folders of the runs in a folder, the one first that the others are compared with.

    A comparison tells its order, and a compilation is read from before to after; others stand as they began.
    """
    named = {name: place for place, name in enumerate([*_compared(folder), "before", "after"])}
    inside = [file.parent for file in folder.glob("*/records.jsonl")]
    return sorted(inside, key=lambda run: (named.get(run.name, len(named)), _began(run), run.name))


def _compared(folder: Path) -> list[str]:
    """Return the programs of a finished comparison in their order; none if it tells of none."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return [str(one["program"]) for one in parse_json(read_bytes(folder / "comparison.json"))["programs"]]
    return []


def _began(run: Path) -> int:
    manifest = run / "run.json"  # written once
    return manifest.stat().st_mtime_ns if manifest.exists() else 0
