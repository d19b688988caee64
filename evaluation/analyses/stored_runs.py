"""Runs as they lie on the disk, for analyses: nothing is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from ..records import Record
from ..run_folder import read_manifest, read_records


@dataclass(frozen=True)
class StoredRun:
    """One run of a program over questions.

    Attributes:
        name: unique among those that were read together.
        records: as they were finished, the latest of each question.
        identity: what the run is about: program, settings, LM, retriever (`run_identity`).
    """

    name: str
    records: tuple[Record, ...]
    identity: dict[str, Any]

    @property
    def simulated(self) -> bool:
        """Whether the simulated LM answered."""
        return bool(self.identity.get("lm", {}).get("simulated"))

    @property
    def metric(self) -> str:
        """Return the metric that the run was scored by first.

        Raises:
            QuestreeError: if no answer is scored yet.
        """
        scored = (name for record in self.records for name in record.scores)
        metric: str | None = next(iter(self.identity.get("metrics") or scored), None)  # older versions kept them there
        if metric is None:
            raise QuestreeError(f"No answer of the run {self.name} is scored yet; run the same evaluation again.")
        return metric


def stored_runs(folders: Sequence[Path]) -> list[StoredRun]:
    """The runs in these folders; a comparison's or an ablation's folder stands for all runs in it.

    Raises:
        QuestreeError: if a folder holds none, or a run has no finished question or is damaged.
    """
    runs: dict[str, StoredRun] = {}
    for folder in folders:
        for place in _places(folder):
            records = read_records(place)
            if not records:
                raise QuestreeError(f"The run in {place} has no finished question yet.")
            name = place.name if place.name not in runs else str(place)
            runs[name] = StoredRun(name, tuple(records), read_manifest(place / "run.json"))
    return list(runs.values())


def paired(first: Sequence[Record], second: Sequence[Record]) -> list[tuple[Record, Record]]:
    """The questions that both runs answered, in the order of the first; a failure is no answer.

    Raises:
        QuestreeError: if there are none.
    """
    others = {record.id: record for record in second if record.failure is None}
    pairs = [(record, others[record.id]) for record in first if record.failure is None and record.id in others]
    if not pairs:
        raise QuestreeError("The two runs have no answered question in common; give runs over the same questions.")
    return pairs


def _places(folder: Path) -> list[Path]:
    if (folder / "records.jsonl").exists():
        return [folder]
    inside = sorted(file.parent for file in folder.glob("*/records.jsonl"))
    if not inside:
        raise QuestreeError(f"{folder} holds no run; give the folder of an evaluation, comparison or ablation.")
    return inside
