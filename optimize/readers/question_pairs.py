"""Pairs of questions that ask the same or not; the threshold of a duplicate check is chosen on them."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...common.errors import QuestreeError
from .readings import Reading

_COLUMNS = ("question1", "question2", "is_duplicate")
_TRUTHS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


class LikenessCheck(Protocol):
    """A duplicate check that says how alike two queries are."""

    name: str
    threshold: float

    def likeness(self, query: str, seen: Sequence[str]) -> list[float]:
        """Return one number for each seen query; higher is more alike."""
        ...


@dataclass(frozen=True)
class QuestionPair:
    """Two questions, and whether they ask the same."""

    first: str
    second: str
    same: bool

    @property
    def held_out(self) -> bool:
        """Return whether the pair is in the half that thresholds are scored on; the first question decides."""
        return hashlib.sha256(" ".join(self.first.lower().split()).encode()).digest()[0] % 2 == 1


def read_pairs(path: Path) -> list[QuestionPair]:
    """Read a file in the form of Quora Question Pairs: ``question1``, ``question2``, ``is_duplicate``.

    Args:
        path: ``.jsonl``; or ``.tsv`` or ``.csv`` with these names in the first line (other columns are ignored).

    Raises:
        QuestreeError: if it cannot be read, a line lacks one of them, or all pairs are of one kind.
    """
    pairs: list[QuestionPair] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in _rows(file, path.suffix.lower()):
                pairs.append(_pair(row, f"{path}, line {number}"))
    except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError) as problem:
        raise QuestreeError(f"The pairs in {path} cannot be read: {problem}") from problem
    if len({pair.same for pair in pairs}) < 2:
        raise QuestreeError(f"{path} holds {len(pairs)} pairs of one kind; a threshold needs duplicates and others.")
    return pairs


def compare_all(
    check: LikenessCheck, pairs: Sequence[QuestionPair], *, on_progress: Callable[[int], None] = lambda done: None
) -> list[Reading]:
    """Return, for each pair, how alike the check finds it, and whether the two ask the same."""
    readings = []
    for pair in pairs:
        (likeness,) = check.likeness(pair.first, [pair.second])
        readings.append(Reading(likeness, pair.same))
        on_progress(len(readings))
    return readings


def _rows(file: Any, suffix: str) -> Iterator[tuple[int, Any]]:
    if suffix in (".tsv", ".csv"):
        reader = csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",")
        for row in reader:
            yield reader.line_num, row
    else:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, json.loads(line)


def _pair(row: Any, place: str) -> QuestionPair:
    values = [
        str(row.get(name) if isinstance(row, dict) and row.get(name) is not None else "").strip() for name in _COLUMNS
    ]
    first, second, same = values
    if not first or not second or same.lower() not in _TRUTHS:
        raise QuestreeError(f"{place}: a pair needs {', '.join(_COLUMNS)} (0 or 1).")
    return QuestionPair(first, second, _TRUTHS[same.lower()])
