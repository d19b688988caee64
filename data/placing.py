"""Puts a fetched task into its place in the data folder: whole, or not at all."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..common.errors import QuestreeError
from ..common.files import put_in_place, write_atomically
from ..common.manifests import FileRecord
from .folders import DATA_VARIABLE
from .manifest import TaskManifest, manifest_path, unfinished_path


def check_place(folder: Path, name: str) -> None:
    """Look whether a task may be written here: files that no fetch wrote are the user's own.

    Raises:
        QuestreeError: if there is one where the task would go.
    """
    if manifest_path(folder, name).exists() or unfinished_path(folder, name).exists():
        return
    for file in (folder / f"{name}.jsonl", folder / "corpora" / f"{name}.jsonl"):
        if file.exists():
            raise QuestreeError(
                f"{file} is there, and was not fetched: it is left as it is. Move it away, or set {DATA_VARIABLE}."
            )


@contextlib.contextmanager
def being_made(folder: Path, name: str) -> Iterator[Path]:
    """A folder for a task that is being made, in which no other command looks."""
    unfinished = unfinished_path(folder, name)
    unfinished.mkdir(exist_ok=True)
    for leftover in unfinished.iterdir():
        leftover.unlink()
    try:
        yield unfinished
    finally:
        # While questions lie there without their manifest, what is left of this says that they are no task.
        if manifest_path(folder, name).exists() or not (folder / f"{name}.jsonl").exists():
            shutil.rmtree(unfinished, ignore_errors=True)


def place_task(folder: Path, unfinished: Path, manifest: TaskManifest) -> TaskManifest:
    """Move what was made to its place; the old manifest goes first and the new one comes last."""
    made = {"questions.jsonl": f"{manifest.task}.jsonl"}
    if manifest.passages:
        made["corpus.jsonl"] = f"corpora/{manifest.task}.jsonl"
    records = {place: FileRecord.of(unfinished / name) for name, place in made.items()}
    sealed = manifest.model_copy(update={"files": records})
    manifest_path(folder, manifest.task).unlink(missing_ok=True)
    (folder / "corpora").mkdir(exist_ok=True)
    for name, place in made.items():
        put_in_place(unfinished / name, folder / place)
    write_atomically(manifest_path(folder, manifest.task), sealed.model_dump_json(indent=2) + "\n")
    with contextlib.suppress(OSError):
        (folder / "corpora").rmdir()  # if nothing is in it
    return sealed
