"""What a command has finished, as it lies on the disk, and what came of it in the end."""

import hashlib
import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from questree.evaluation.run_file import NAME, EmptyFileError, reading
from questree.evaluation.stored_runs import records_of
from questree.retrieval.indexes.construction import MARK

RUN = "run"
_RUNS = (RUN, "runs")  # that of a command with a folder of its own for its run, and a file for what it makes
_LEFT = ("lock", MARK)  # of a process that was killed when all was done
_TIMES = {"seconds", "checksum", "record"}  # the digest of a record is one of its seconds, too
_PAID = {"cached", "tokens_in", "tokens_out", "cost", "paid"}  # a reply that comes from the cache was paid for before


@dataclass(frozen=True)
class Finished:
    """What must neither be lost nor done again: by name, a mark that changes when it is done again.

    Attributes:
        work: answered questions, candidates of an optimizer, chunks of an index.
        replies: of the LM, by their key in the client's cache; with the time at which they were kept.
    """

    work: dict[str, Any] = field(default_factory=dict)
    replies: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.work) + len(self.replies)


def finished(folder: Path) -> Finished:
    """What lies in a command's folder."""
    work = _chunks(folder)
    for file in [path for run in _RUNS for path in (folder / run).rglob(NAME)]:
        work |= _answers(file)
    return Finished(work, dict(_replies(folder / "cache")))


def result(folder: Path) -> dict[str, Any]:
    """What came of a command, file by file, but for times and for what was paid in which of its processes."""
    found: dict[str, Any] = {}
    there = (path for run in _RUNS for path in (folder / run).rglob("*"))
    for file in sorted(path for path in there if path.is_file() and path.name not in _LEFT):
        name = file.relative_to(folder).as_posix()
        if file.name == NAME:
            found[name] = _told(file)
        elif file.suffix == ".json":
            found[name] = _untimed(json.loads(file.read_bytes()))
        elif file.suffix in (".md", ".csv", ".html"):  # of the others, with their times
            found[name] = True
        else:
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def _told(file: Path) -> dict[str, Any]:
    """What a file of runs holds, in an order that no thread changes."""
    with reading(file) as runs:
        names = dict(runs.rows("SELECT number, name FROM run"))
        steps = "SELECT run, id, place, kind, name, request, outcome FROM steps ORDER BY run, id, number"
        return {
            "runs": [_untimed(runs.values(row)) for row in runs.rows("SELECT about, metrics FROM run ORDER BY name")],
            "records": sorted(
                (names[number], id, json.dumps(_untimed(record.model_dump(mode="json")), sort_keys=True))
                for number in names
                for id, record in records_of(runs, number).items()
            ),
            "steps": [
                (names[run], *said, _untimed(runs.values(texts)))
                for run, *said, one, other in runs.rows(steps)
                for texts in [(one, other)]
            ],
            "candidates": runs.rows("SELECT number, score, questions, state FROM candidates"),
        }


def _answers(path: Path) -> dict[str, Any]:
    """Return the answered questions and the candidates in a file of runs."""
    try:
        with reading(path) as file:
            records = file.rows("SELECT name, id, record FROM questions JOIN run ON run = number")
            candidates = file.rows("SELECT number, score, questions, state FROM candidates")
    except EmptyFileError:  # killed before anything was written
        return {}
    found = {f"{name}: {id}": record for name, id, record in records}
    return found | {f"candidate {number}": said for number, *said in candidates}


def _chunks(folder: Path) -> dict[str, Any]:
    found = {}
    for file in sorted((folder / RUN).rglob("*.chunk.json")):
        about = file.stat()
        found[f"chunk {file.name[:6]}"] = (about.st_ino, about.st_mtime_ns)
    return found


def _replies(cache: Path) -> list[tuple[str, int]]:
    found = []
    for file in sorted(cache.rglob("replies.db")):
        database = sqlite3.connect(file)
        with closing(database), suppress(sqlite3.OperationalError):  # killed before its table was made
            found += database.execute("SELECT key, rowid FROM replies").fetchall()
    return found


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _untimed(inner) for key, inner in value.items() if key not in _TIMES | _PAID}
    return [_untimed(inner) for inner in value] if isinstance(value, list) else value
