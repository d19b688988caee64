"""The fetch of a known task into the data folder, once: from the hub, or from its authors' files."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..common.errors import QuestreeError, unknown_name
from ..common.files import file_hash, in_turn
from .published_rows import file_rows, hub_rows
from .task import Question, Split, split_by_hash
from .task_files import DATA_VARIABLE, HubRecord, TaskManifest, TaskPlace, data_folder, read_task_manifest
from .task_writer import TaskWriter, task_writer
from .tasks import KNOWN_TASKS, BadRow, KnownTask, Row

logger = logging.getLogger(__name__)

TRAIN_LIMIT = 5_000
"""Training questions that a fetch keeps: a compilation uses hundreds, and every command reads all that is kept."""

_Rows = Iterator[tuple[Split | None, int, Row | BadRow]]


@dataclass(frozen=True)
class Fetched:
    """A task in the data folder.

    Attributes:
        questions: its file.
        corpus: the file of its own paragraphs; None if it has none.
        manifest: what it was made from.
        new: whether it was fetched just now.
    """

    questions: Path
    corpus: Path | None
    manifest: TaskManifest
    new: bool


def fetch_task(
    name: str,
    *,
    files: Sequence[str | Path] = (),
    update: bool = False,
    train_limit: int | None = TRAIN_LIMIT,
    skip_bad: bool = False,
    data_dir: str | Path | None = None,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Fetched:
    """Put a known task's questions into the data folder, and its paragraphs beside them as a corpus.

    A task that is there already is left as it is. All is written beside its place and put there at the end, the
    manifest last: an interrupted fetch leaves nothing that would be taken for a task.

    Args:
        name: one of `KNOWN_TASKS`.
        files: of its authors, instead of the hub.
        update: fetch again what is there.
        train_limit: how many training questions to keep, a sample that depends on their ids; None keeps all.
        skip_bad: leave out rows that cannot be read, and count them.
        data_dir: the data folder; by default what ``QUESTREE_DATA`` names, else one in the cache folder.
        on_progress: called with the number of rows that were read, now and then.

    Raises:
        QuestreeError: if there is no such task; the hub or a file cannot be read; a row is bad (named by its place); a
            file of the user's own is in the way; or ``update`` is not set, and what is there is of another revision,
            of other files, or of another limit than the default.
    """
    task, place = _known(name), TaskPlace(_writable(data_folder(data_dir)), name)
    with in_turn(place.folder / f".{name}.lock", f"fetching {name}"):
        if not update and place.manifest.is_file():
            return _there(task, place, files, train_limit)
        place.check()
        rows: _Rows = file_rows(task, [Path(file) for file in files]) if files else hub_rows(task)
        with place.being_made() as unfinished:
            writer = _written(task, unfinished, rows, train_limit, skip_bad, on_progress)
            manifest = place.put(_manifest(task, writer, files, train_limit))
    return _fetched(place, manifest, new=True)


def _known(name: str) -> KnownTask:
    task = KNOWN_TASKS.get(name)
    if task is None:
        raise QuestreeError(unknown_name("known task", name, KNOWN_TASKS))
    if task.read is None:
        raise QuestreeError(f"{name} is not fetched: {task.source}.")
    return task


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise QuestreeError(f"No folder can be made at {folder}: {problem.strerror or problem}.") from problem
    if not os.access(folder, os.W_OK):
        raise QuestreeError(f"{folder} cannot be written to. Set {DATA_VARIABLE} to a folder of your own.")
    return folder


def _there(task: KnownTask, place: TaskPlace, files: Sequence[str | Path], train_limit: int | None) -> Fetched:
    """Return what is there; refuse it if it was made otherwise than it is asked for."""
    manifest = read_task_manifest(place.folder, task.name)
    assert manifest is not None
    pinned, otherwise = task.hub.pin if task.hub else None, ""
    if manifest.hub and not files and manifest.hub.revision != pinned:
        otherwise = f"from revision {manifest.hub.revision}; this version of questree pins {pinned}"
    elif files and _hashes(files) != manifest.read:
        otherwise = f"from {manifest.hub.id if manifest.hub else ', '.join(manifest.read)}, and not from these files"
    elif train_limit not in (TRAIN_LIMIT, manifest.train_limit):
        otherwise = f"with another limit of training questions ({manifest.train_limit or 'none'})"
    if otherwise:
        raise QuestreeError(f"{task.name} is there {otherwise}. Replace it: the same command with --update.")
    return _fetched(place, manifest, new=False)


def _hashes(files: Sequence[str | Path]) -> dict[str, str]:
    try:
        return {Path(file).name: file_hash(Path(file)) for file in files}
    except OSError as problem:
        raise QuestreeError(f"Cannot read {problem.filename}: {problem.strerror}.") from problem


def _written(
    task: KnownTask,
    unfinished: Path,
    rows: _Rows,
    train_limit: int | None,
    skip_bad: bool,
    on_progress: Callable[[int], None],
) -> TaskWriter:
    references: Mapping[str, Any] = {}
    with task_writer(unfinished, train_limit) as writer:
        for number, (split, position, row) in enumerate(rows, start=1):
            references = getattr(row, "references", references)
            try:
                _add(task, writer, split, position, row)
            except BadRow as problem:
                if not skip_bad:
                    raise BadRow(f"{problem} (--skip-bad leaves such rows out, and counts them)") from problem
                logger.warning("left out: %s", problem)
                writer.left_out["bad row"] += 1
            if number % 1000 == 0:
                on_progress(number)
        writer.add_passages(task.passages(references))
    if not writer.counts:
        raise QuestreeError(f"There are no questions of {task.name} in it.")
    return writer


def _add(task: KnownTask, writer: TaskWriter, published: Split | None, position: int, row: Row | BadRow) -> None:
    """Write the question of a row."""
    if isinstance(row, BadRow):
        raise row
    assert task.read is not None
    try:
        fields = task.read(row)
    except (AttributeError, TypeError, KeyError, IndexError, ValueError) as problem:
        raise BadRow(f"{row.place}: not as {task.name} is published ({problem!r}).") from problem
    if fields is None:
        writer.left_out["question without an answer in its paragraphs"] += 1
        return
    split = _split(task, published, row, str(fields["question"]), position)
    given = {**fields, "task": task.name, "split": split, "position": position}
    style = {} if task.style == "mixed" else {"style": task.style}
    try:
        question = Question.model_validate({k: v for k, v in {**style, **given}.items() if v is not None})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or "question"
        raise BadRow(f"{row.place}: {where}: {fault['msg']}.") from error
    writer.add(question, given, row.place)


def _split(task: KnownTask, published: Split | None, row: Row, words: str, position: int) -> Split:
    """Return the published split, or dev for some training questions of a task without dev, or a split by the words."""
    if task.only_split:
        return task.only_split
    if task.place:
        return task.place(published, row, words, position)
    by_hash = split_by_hash(words)
    if published is None:
        return by_hash
    return "dev" if published == "train" and "dev" not in task.sizes and by_hash == "dev" else published


def _manifest(
    task: KnownTask, writer: TaskWriter, files: Sequence[str | Path], train_limit: int | None
) -> TaskManifest:
    hub = HubRecord(id=task.hub.id, config=task.hub.config, revision=task.hub.pin) if task.hub and not files else None
    kept = {"counts": dict(writer.counts), "left_out": dict(writer.left_out), "passages": writer.passages}
    told = {"task": task.name, "licence": task.licence, "citation": task.citation, "train_limit": train_limit}
    return TaskManifest.model_validate({**told, "hub": hub, "read": _hashes(files), **kept})


def _fetched(place: TaskPlace, manifest: TaskManifest, *, new: bool) -> Fetched:
    return Fetched(place.questions, place.corpus if manifest.passages else None, manifest, new)
