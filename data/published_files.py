"""Published rows from the files of a task's authors: JSON, JSON lines, tables; plain or compressed."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ..common.errors import QuestreeError
from .task import SPLITS, Split
from .tasks import BadRow, KnownTask, Row

_OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {".gz": gzip.open, ".bz2": bz2.open}  # type: ignore[dict-item]
_NAMED: tuple[tuple[Split, re.Pattern[str]], ...] = (
    ("train", re.compile("train", re.IGNORECASE)),
    ("dev", re.compile("dev|val", re.IGNORECASE)),
    ("test", re.compile("test", re.IGNORECASE)),
)


def split_named(path: Path) -> Split | None:
    """The published split that a file's name tells: ``hotpot_dev_distractor_v1.json`` is ``dev``."""
    return next((split for split, pattern in _NAMED if pattern.search(path.name)), None)


def file_rows(task: KnownTask, paths: Sequence[Path]) -> Iterator[tuple[Split | None, int, Row]]:
    """The rows of all files, test first, each with its number in the file and the split that the name tells.

    Raises:
        QuestreeError: if a file cannot be read, or is of no form known; names file, and line or entry.
    """
    references: dict[str, Any] = {}
    questions = []
    for path in sorted(paths, key=_order):
        if task.references and task.references in path.name:
            references.update(_references(path))
        else:
            questions.append(path)
    if not questions:
        raise QuestreeError(f"{', '.join(map(str, paths))}: no file with questions is among these ({task.files}).")
    for path in questions:
        rows = _entries(task, path) if _is_json_document(path) else _lines(task, path)
        for number, (place, data) in enumerate(rows, start=1):
            if not isinstance(data, Mapping):
                raise BadRow(f"{place}: a {type(data).__name__}, where an object is needed.")
            yield split_named(path), number, Row(place, data, references)


def _order(path: Path) -> tuple[int, str]:
    split = split_named(path)
    return (-SPLITS.index(split) if split else 1, path.name)


def _references(path: Path) -> Mapping[str, Any]:
    document = _json_document(path)
    if not isinstance(document, Mapping):
        raise QuestreeError(f"{path}: a {type(document).__name__}, where an object of paragraphs by id is needed.")
    return document


def _opened(path: Path) -> IO[str]:
    try:
        opened = _OPENERS.get(path.suffix.lower(), lambda file: file.open("rb"))(path)
        return io.TextIOWrapper(opened, encoding="utf-8-sig", newline="")
    except OSError as problem:
        raise QuestreeError(f"Cannot read {path}: {problem.strerror or problem}.") from problem


def _kind(path: Path) -> str:
    name = path.name[: -len(path.suffix)] if path.suffix.lower() in _OPENERS else path.name
    return Path(name).suffix.lower()


def _is_json_document(path: Path) -> bool:
    """Whether a file is one JSON value, rather than one a line; a name does not always tell."""
    if _kind(path) != ".json":
        return False
    with _opened(path) as file:
        first = _read(path, file.readline).strip()
    if not first.startswith("{"):
        return True
    try:
        json.loads(first)
    except ValueError:
        return True
    with _opened(path) as file:
        file.readline()
        return not _read(path, file.readline).strip()


def _read(path: Path, read: Callable[[], str]) -> str:
    try:
        return read()
    except (OSError, UnicodeDecodeError, EOFError) as problem:
        raise QuestreeError(f"Cannot read {path}: {problem}.") from problem


def _json_document(path: Path) -> Any:
    with _opened(path) as file:
        text = _read(path, file.read)
    try:
        return json.loads(text)
    except ValueError as problem:
        raise QuestreeError(f"{path} is no JSON: {problem}. Is it all there?") from problem


def _entries(task: KnownTask, path: Path) -> Iterator[tuple[str, Any]]:
    document = _json_document(path)
    rows = task.unpack(document) if isinstance(document, Mapping) else document
    if rows is None or isinstance(rows, (str, int, float)):
        raise QuestreeError(f"{path} is not in a form in which {task.name} is published: {task.files}.")
    try:
        yield from ((f"{path}, entry {number}", entry) for number, entry in enumerate(rows, start=1))
    except (AttributeError, TypeError) as problem:  # what it is unpacked from is nested otherwise
        raise QuestreeError(f"{path} is not in a form in which {task.name} is published ({problem}).") from problem


def _lines(task: KnownTask, path: Path) -> Iterator[tuple[str, Any]]:
    if _kind(path) in {".tsv", ".csv", ".txt"}:
        yield from _table(task, path)
        return
    with _opened(path) as file:
        number = 0
        while line := _read(path, file.readline):
            number += 1
            if not line.strip():
                continue
            try:
                yield f"{path}, line {number}", json.loads(line)
            except ValueError as problem:
                raise BadRow(f"{path}, line {number}: not JSON ({problem}).") from None


def _table(task: KnownTask, path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with _opened(path) as file:
        beginning = _read(path, file.readline)
    # DPR's .csv is tab-separated; what is so separated quotes nothing
    tabs = "\t" in beginning
    with _opened(path) as file:
        cells = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(file)
        try:
            for values in cells:
                if not any(value.strip() for value in values):
                    continue
                yield from _named_cells(task, f"{path}, line {cells.line_num}", values)
        except (csv.Error, OSError, UnicodeDecodeError, EOFError) as problem:
            raise QuestreeError(f"{path}, line {cells.line_num}: {problem}.") from problem


def _named_cells(task: KnownTask, place: str, values: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    names = task.cells.get(len(values))
    if names is None:
        counts = " or ".join(map(str, task.cells)) or "none"
        raise BadRow(f"{place}: {len(values)} columns, where {task.name} has {counts}.")
    if [value.strip().lower() for value in values] != [name.lower() for name in names]:  # a header
        yield place, dict(zip(names, values, strict=True))
