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

from ..common.errors import QuestreeError
from ..common.files import cache_folder, make_folder, put_in_place, write_atomically
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


class TaskPlace:
    """Where the files of a task lie in the data folder.

    Attributes:
        corpus: its file, if the task has one.
        unfinished: the folder in which the task is made; it exists only meanwhile, or after an interruption.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.questions, self.corpus = folder / f"{name}.jsonl", folder / "corpora" / f"{name}.jsonl"
        self.manifest, self.unfinished = folder / f"{name}.manifest.json", folder / f".{name}.part"

    def check(self) -> None:
        """Refuse to write a task over files that no fetch wrote: they are the user's own."""
        if self.manifest.exists() or self.unfinished.exists():
            return
        for file in (self.questions, self.corpus):
            if file.exists():
                raise QuestreeError(
                    f"{file} is there, and was not fetched: it is left as it is. Move it away, or set {DATA_VARIABLE}."
                )

    @contextlib.contextmanager
    def being_made(self) -> Iterator[Path]:
        """Give an empty folder to make the task in; no other command looks there."""
        make_folder(self.unfinished)
        for leftover in self.unfinished.iterdir():
            leftover.unlink()
        try:
            yield self.unfinished
        finally:
            # If questions are in place without their manifest, this folder stays and says that they are no task.
            if self.manifest.exists() or not self.questions.exists():
                shutil.rmtree(self.unfinished, ignore_errors=True)

    def put(self, manifest: TaskManifest) -> TaskManifest:
        """Move what was made to its place, the manifest last; the old one goes first. Return the manifest."""
        made = {"questions.jsonl": self.questions}
        if manifest.passages:
            made["corpus.jsonl"] = self.corpus
        records = {
            file.relative_to(self.folder).as_posix(): FileRecord.of(self.unfinished / name)
            for name, file in made.items()
        }
        sealed = manifest.model_copy(update={"files": records})
        self.manifest.unlink(missing_ok=True)
        self.corpus.parent.mkdir(exist_ok=True)
        for name, file in made.items():
            put_in_place(self.unfinished / name, file)
        write_atomically(self.manifest, sealed.model_dump_json(indent=2) + "\n")
        with contextlib.suppress(OSError):
            self.corpus.parent.rmdir()  # if nothing is in it
        return sealed


def read_task_manifest(folder: Path, name: str) -> TaskManifest | None:
    """Return the manifest of a fetched task after a look at its files, or None if the task was not fetched.

    Raises:
        QuestreeError: if the fetch was interrupted, or a file that it wrote has another size now, or cannot be read.
    """
    place, again = TaskPlace(folder, name), f"get it again: questree fetch {name} --update"
    if not place.manifest.is_file():
        if place.unfinished.is_dir():
            raise QuestreeError(f"{place.questions} is not complete: its fetch was interrupted; {again}")
        return None
    kind = ManifestKind("task", FORMAT, again)
    manifest = kind.read(place.manifest, TaskManifest.model_validate)
    kind.check_files(folder, manifest.files, full=False)
    return manifest
