"""The data folder: a task in it is a file of questions, maybe a corpus, and a manifest that says what it was made from.

A task is there whole or not at all: it is made in a folder of its own, and its manifest is written last.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ..common.caches import cache_folder
from ..common.errors import QuestreeError
from ..common.files import make_folder, put_in_place, write_atomically
from ..common.manifests import FileRecord, ManifestKind
from .task import Split

DATA_VARIABLE = "QUESTREE_DATA"
"""The environment variable that names the data folder."""
FORMAT = 1


class HubRecord(BaseModel):
    """The published questions on the hub: repository, configuration, and what pins their state."""

    model_config = ConfigDict(frozen=True)

    id: str
    config: str | None = None
    revision: str


class TaskManifest(BaseModel):
    """Where a task's questions came from, and what was kept of them.

    Attributes:
        hub: where they came from, if from there.
        read: the authors' files that were read, and their checksums, if from those.
        counts: questions kept, by split.
        left_out: rows that were not kept, by reason.
        train_limit: how many training questions were kept at most; None kept all.
        passages: how many the corpus holds; 0 if there is no corpus.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    task: str
    hub: HubRecord | None = None
    read: dict[str, str] = {}
    counts: dict[Split, int]
    left_out: dict[str, int] = {}
    train_limit: int | None = None
    passages: int = 0
    files: dict[str, FileRecord] = {}
    licence: str
    citation: str


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Return the folder given, else what ``QUESTREE_DATA`` names, else ``tasks`` in the cache folder (may be absent).

    Raises:
        QuestreeError: if the named folder does not exist.
    """
    named = data_dir or os.environ.get(DATA_VARIABLE)
    if not named:
        return cache_folder() / "tasks"
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise QuestreeError(f"The data folder {folder} does not exist (set by data_dir or {DATA_VARIABLE}).")
    return folder


def questions_file(folder: Path, name: str) -> Path:
    """Return where the questions of a task lie."""
    return folder / f"{name}.jsonl"


def corpus_file(folder: Path, name: str) -> Path:
    """Return where the corpus of a task lies, if it has one."""
    return folder / "corpora" / f"{name}.jsonl"


def read_task_manifest(folder: Path, name: str) -> TaskManifest | None:
    """Return the manifest of a fetched task after a look at its files, or None if the task was not fetched.

    Raises:
        QuestreeError: if the fetch was interrupted, or a file that it wrote has another size now, or cannot be read.
    """
    path, again = _manifest_file(folder, name), f"get it again: questree fetch {name} --update"
    if not path.is_file():
        if _unfinished(folder, name).is_dir():
            raise QuestreeError(f"{questions_file(folder, name)} is not complete: its fetch was interrupted; {again}")
        return None
    kind = ManifestKind("task", FORMAT, again)
    manifest = kind.read(path, TaskManifest.model_validate)
    kind.check_files(folder, manifest.files, full=False)
    return manifest


def check_place(folder: Path, name: str) -> None:
    """Refuse to write a task over files that no fetch wrote: they are the user's own."""
    if _manifest_file(folder, name).exists() or _unfinished(folder, name).exists():
        return
    for file in (questions_file(folder, name), corpus_file(folder, name)):
        if file.exists():
            raise QuestreeError(
                f"{file} is there, and was not fetched: it is left as it is. Move it away, or set {DATA_VARIABLE}."
            )


@contextlib.contextmanager
def being_made(folder: Path, name: str) -> Iterator[Path]:
    """Give an empty folder to make a task in; no other command looks there."""
    unfinished = _unfinished(folder, name)
    make_folder(unfinished)
    for leftover in unfinished.iterdir():
        leftover.unlink()
    try:
        yield unfinished
    finally:
        # If questions are in place without their manifest, this folder stays and says that they are no task.
        if _manifest_file(folder, name).exists() or not questions_file(folder, name).exists():
            shutil.rmtree(unfinished, ignore_errors=True)


def place_task(folder: Path, unfinished: Path, manifest: TaskManifest) -> TaskManifest:
    """Move what was made to its place and return its manifest; the old manifest goes first, the new one comes last."""
    made = {"questions.jsonl": questions_file(folder, manifest.task)}
    if manifest.passages:
        made["corpus.jsonl"] = corpus_file(folder, manifest.task)
    records = {place.relative_to(folder).as_posix(): FileRecord.of(unfinished / name) for name, place in made.items()}
    sealed = manifest.model_copy(update={"files": records})
    _manifest_file(folder, manifest.task).unlink(missing_ok=True)
    (folder / "corpora").mkdir(exist_ok=True)
    for name, place in made.items():
        put_in_place(unfinished / name, place)
    write_atomically(_manifest_file(folder, manifest.task), sealed.model_dump_json(indent=2) + "\n")
    with contextlib.suppress(OSError):
        (folder / "corpora").rmdir()  # if nothing is in it
    return sealed


def has_manifest(folder: Path, name: str) -> bool:
    """Tell whether a task was fetched into the folder."""
    return _manifest_file(folder, name).is_file()


def _manifest_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.manifest.json"


def _unfinished(folder: Path, name: str) -> Path:
    """Return the folder in which a task is made; it exists only meanwhile, or after an interruption."""
    return folder / f".{name}.part"
