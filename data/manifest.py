"""What a fetched task was made from: a file beside its questions, written last."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ..common.errors import QuestreeError
from ..common.manifests import FileRecord, ManifestKind
from .task import Split

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
        format: of this file.
        task: its name.
        hub: where they came from, if from there.
        read: the authors' files that were read, and their checksums, if from those.
        counts: questions kept, by split.
        left_out: rows that were not kept, by reason.
        train_limit: at most so many training questions; None kept all.
        passages: in the corpus; 0 where there is none.
        files: what was written, by path in the data folder.
        licence: of the questions.
        citation: whom to cite.
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


def manifest_path(folder: Path, name: str) -> Path:
    """Where the manifest of a task lies."""
    return folder / f"{name}.manifest.json"


def unfinished_path(folder: Path, name: str) -> Path:
    """The folder in which a task is made; there only while it is, or after that was interrupted."""
    return folder / f".{name}.part"


def read_task_manifest(folder: Path, name: str) -> TaskManifest | None:
    """The manifest of a fetched task after a look at its files; None for a task that was not fetched.

    Raises:
        QuestreeError: if the fetch never ended, or what it wrote has another size now, or cannot be read.
    """
    path, again = manifest_path(folder, name), f"get it again: questree fetch {name} --update"
    if not path.is_file():
        if unfinished_path(folder, name).is_dir():
            raise QuestreeError(f"{folder / name}.jsonl is not complete: its fetch was interrupted; {again}")
        return None
    kind = ManifestKind("task", FORMAT, again)
    manifest = kind.read(path, TaskManifest.model_validate)
    kind.check_files(folder, manifest.files, full=False)
    return manifest
