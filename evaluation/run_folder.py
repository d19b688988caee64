"""A run on disk: who it is (``run.json``), and each finished question as a line of ``records.jsonl``."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..common.errors import QuestreeError
from ..common.files import alone_in, append_line, write_atomically
from ..common.manifests import ManifestKind
from .records import Record

FORMAT = 1

logger = logging.getLogger(__name__)


class RunFolder:
    """The records of one run, in a folder that only one process writes at a time. Get one from `open_run`.

    Attributes:
        path: of the folder.
        records: by question id, the latest of each.
    """

    def __init__(self, path: Path):
        self.path = path
        self.file = path / "records.jsonl"
        self.records: dict[str, Record] = {record.id: record for record in read_records(path)}

    def append(self, record: Record) -> None:
        """Keep the record; it is on the disk when this returns.

        Raises:
            QuestreeError: if it cannot be written.
        """
        try:
            append_line(self.file, record.model_dump_json())
        except OSError as error:
            raise QuestreeError(
                f"Cannot write to {self.file}: {error.strerror}. What was finished before is kept: "
                "make room (or the folder writable) and run again with the same --out."
            ) from error
        self.records[record.id] = record


@contextmanager
def open_run(path: Path, identity: dict[str, Any]) -> Iterator[RunFolder]:
    """Begin a run in the folder, or go on with the one that is there.

    Args:
        path: made if need be.
        identity: what the run is about; JSON. A run is gone on with only by the same.

    Raises:
        QuestreeError: if the run there is about something else (names what differs), if another process is
            writing it, if a newer version wrote it, or if its files are damaged.
    """
    with alone_in(path, "the run"):
        claim(path / "run.json", identity)
        _mend_last_line(path / "records.jsonl")
        yield RunFolder(path)


def claim(manifest: Path, identity: dict[str, Any]) -> None:
    """Write down what the run is about; where that was done before, compare.

    Raises:
        QuestreeError: if it is another run; names what differs. If another version wrote it, or it is damaged.
    """
    identity = {"format": FORMAT, **json.loads(json.dumps(identity))}
    if not manifest.exists():
        write_atomically(manifest, json.dumps(identity, indent=2, ensure_ascii=False))
        return
    there = read_manifest(manifest)
    differences = [
        f"{key} was {there.get(key)!r} and is now {identity.get(key)!r}"
        for key in sorted({*there, *identity})
        if there.get(key) != identity.get(key)
    ]
    if differences:
        raise QuestreeError(
            f"{manifest.parent} holds another run: {'; '.join(differences)}. Go on with what it was, "
            "or name another folder."
        )


def read_manifest(manifest: Path) -> dict[str, Any]:
    """What a run is about.

    Raises:
        QuestreeError: if there is none, it is damaged, or another version wrote it.
    """
    kind = ManifestKind("run", FORMAT, "delete it and run again, or name another folder")
    return kind.read(manifest, dict)


def read_records(path: Path) -> list[Record]:
    """The records of the run in a folder, the latest of each question, in the order of their first writing.

    A last line that a killed process left unfinished is passed over, with a warning.

    Raises:
        QuestreeError: if any other line is damaged; names it.
    """
    file = path / "records.jsonl"
    if not file.exists():
        return []
    records: dict[str, Record] = {}
    lines = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            record = Record.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines):
                logger.warning("%s, line %d: left unfinished by an interrupted run; dropped.", file, number)
                continue
            raise QuestreeError(
                f"{file}, line {number} is damaged ({error.errors()[0]['msg']}). Delete that line to ask its "
                "question again; the other lines are good."
            ) from error
        records[record.id] = record
    return list(records.values())


def _mend_last_line(file: Path) -> None:
    """Remove a last line that was left unfinished, or end it where only its end is missing."""
    content = file.read_bytes() if file.exists() else b""
    whole = content.rfind(b"\n") + 1
    if whole == len(content):
        return
    with file.open("r+b") as lines:
        try:
            Record.model_validate_json(content[whole:])
            lines.seek(0, os.SEEK_END)
            lines.write(b"\n")
        except ValidationError:
            logger.warning("%s: its last line was left unfinished by an interrupted run; dropped.", file)
            lines.truncate(whole)
