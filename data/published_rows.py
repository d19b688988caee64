"""Published rows: from the hub at a pinned revision, or from the authors' files (JSON, JSON lines, tables)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..common.errors import QuestreeError
from ..common.hub_faults import hub_fault
from ..common.json_files import not_utf8
from ..common.packed_files import UNREADABLE, open_unpacked, uncompressed
from .task import SPLITS, Split
from .tasks import BadRow, KnownTask, Row

_NAMED: tuple[tuple[Split, re.Pattern[str]], ...] = (
    ("train", re.compile("train", re.IGNORECASE)),
    ("dev", re.compile("dev|val", re.IGNORECASE)),
    ("test", re.compile("test", re.IGNORECASE)),
)


def hub_rows(task: KnownTask) -> Iterator[tuple[Split, int, Row]]:
    """Yield the rows of every split that has answers, test first, each with the split and its number there, from 1."""
    import datasets

    hub = task.hub
    if hub is None:
        raise QuestreeError(
            f"{task.name} is not on the hub. With the files of its authors: questree fetch {task.name} --from FILE "
            f"({task.files}; {task.source})."
        )
    for split in reversed(SPLITS):
        if split not in hub.splits:
            continue
        published = hub.splits[split]
        rows, references = _loaded(datasets, task, published), dict[str, Any]()
        if hub.references:
            found = _loaded(datasets, task, published, hub.references)
            references = {str(one.get(task.reference_id)): one for one in found}
        if missing := [column for column in hub.columns if column not in rows.column_names]:
            raise QuestreeError(
                f"{hub.id}, split {published}, lacks the columns {', '.join(missing)}; it has "
                f"{', '.join(rows.column_names)}. Is this another data set than {task.name}?"
            )
        for number, data in enumerate(rows, start=1):
            yield split, number, Row(f"{hub.id}, split {published}, row {number}", data, references)


def _loaded(datasets: Any, task: KnownTask, published: str, config: str | None = None) -> Any:
    hub = task.hub
    assert hub is not None
    options = dict(hub.options)
    if hub.files is not None:
        options["data_files"] = dict(hub.files)
    instead = f"With the files of its authors: questree fetch {task.name} --from FILE ({task.files}; {task.source})."
    try:
        return datasets.load_dataset(hub.id, config or hub.config, split=published, revision=hub.revision, **options)
    except datasets.exceptions.DatasetNotFoundError as problem:
        raise QuestreeError(f"There is no {hub.id} at revision {hub.revision} ({problem}). {instead}") from problem
    except Exception as problem:  # of datasets, of the hub's client, of HTTP and of files
        raise QuestreeError(f"{hub.id} cannot be read: {hub_fault(problem)}. {instead}") from problem


def split_named(path: Path) -> Split | None:
    """Return the published split that a file's name tells: ``hotpot_dev_distractor_v1.json`` is ``dev``."""
    return next((split for split, pattern in _NAMED if pattern.search(path.name)), None)


def file_rows(task: KnownTask, paths: Sequence[Path]) -> Iterator[tuple[Split | None, int, Row | BadRow]]:
    """Yield the rows of all files, test first, each with the split that the name tells and its number in the file.

    A line or an entry that is no row is yielded as the error that says so: the reader may go on after it.
    """
    references: dict[str, Any] = {}
    questions = []
    for path in sorted(paths, key=_order):
        if task.references and task.references in path.name:
            references.update(_references(task, path))
        else:
            questions.append(path)
    if not questions:
        raise QuestreeError(f"{', '.join(map(str, paths))}: no file with questions is among these ({task.files}).")
    for path in questions:
        for number, (place, data) in enumerate(_values(task, path), start=1):
            yield split_named(path), number, _row(place, data, references)


def _row(place: str, data: Any, references: Mapping[str, Any]) -> Row | BadRow:
    if isinstance(data, (Mapping, BadRow)):
        return data if isinstance(data, BadRow) else Row(place, data, references)
    return BadRow(f"{place}: a {type(data).__name__}, where an object is needed.")


def _order(path: Path) -> tuple[int, str]:
    split = split_named(path)
    return (-SPLITS.index(split) if split else 1, path.name)


def _references(task: KnownTask, path: Path) -> Mapping[str, Any]:
    document = _document(path)
    if document is None or isinstance(document, list):
        rows = [_row(place, data, {}) for place, data in _values(task, path)]
        if bad := next((row for row in rows if isinstance(row, BadRow)), None):
            raise bad
        return {str(row.data.get(task.reference_id)): row.data for row in rows if isinstance(row, Row)}
    if not isinstance(document, Mapping):
        raise QuestreeError(f"{path}: a {type(document).__name__}, where an object of paragraphs by id is needed.")
    return document


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    """Open a file for the block, and name it if it cannot be read there."""
    try:
        with io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as problem:
        raise QuestreeError(f"Cannot read {path}: {not_utf8(problem)}.") from problem
    except UNREADABLE as problem:
        raise QuestreeError(f"Cannot read {path}: {getattr(problem, 'strerror', None) or problem}.") from problem


def _kind(path: Path) -> str:
    return uncompressed(path).suffix.lower()


def _document(path: Path) -> Any:
    """Return the JSON value of a file; None if each line is one, or a row of a table. The name does not always say."""
    if _kind(path) != ".json":
        return None
    with _opened(path) as file:
        text = file.read()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        with suppress(ValueError, RecursionError):
            json.loads(text.lstrip().partition("\n")[0])
            return None
        raise QuestreeError(f"{path} is no JSON: {problem}. Is it all there?") from problem


def _values(task: KnownTask, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield what each entry or line holds, with its place; of a line that is no row, the error."""
    if _kind(path) in {".tsv", ".csv", ".txt"}:
        yield from _table(task, path)
    elif (document := _document(path)) is not None:
        rows = task.unpack(document) if isinstance(document, Mapping) else document
        if rows is None or isinstance(rows, (str, int, float)):
            raise QuestreeError(f"{path} is not in a form in which {task.name} is published: {task.files}.")
        try:
            yield from ((f"{path}, entry {number}", entry) for number, entry in enumerate(rows, start=1))
        except (AttributeError, KeyError, TypeError) as problem:  # what it is unpacked from is nested otherwise
            raise QuestreeError(f"{path} is not in a form in which {task.name} is published ({problem}).") from problem
    else:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                place = f"{path}, line {number}"
                if line.strip():
                    try:
                        yield place, json.loads(line)
                    except (ValueError, RecursionError) as problem:
                        yield place, BadRow(f"{place}: not JSON ({problem}).")


def _table(task: KnownTask, path: Path) -> Iterator[tuple[str, dict[str, str] | BadRow]]:
    """Yield the cells of each line by name; nothing of a header."""
    with _opened(path) as file:
        tabs = "\t" in file.readline()  # DPR's .csv is tab-separated; what is so separated quotes nothing
    with _opened(path) as file:
        cells = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(file)
        try:
            for values in cells:
                if not any(value.strip() for value in values):
                    continue
                place, names = f"{path}, line {cells.line_num}", task.cells.get(len(values))
                if names is None:
                    counts = " or ".join(map(str, task.cells)) or "none"
                    yield place, BadRow(f"{place}: {len(values)} columns, where {task.name} has {counts}.")
                elif [value.strip().lower() for value in values] != [name.lower() for name in names]:
                    yield place, dict(zip(names, values, strict=True))
        except (csv.Error, UnicodeDecodeError, *UNREADABLE) as problem:
            raise QuestreeError(f"{path}, line {cells.line_num}: {problem}.") from problem
