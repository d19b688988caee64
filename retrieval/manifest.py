"""An index folder and its manifest: written last, so that its existence proves the index complete."""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import IndexRefused, QuestreeError

NAME = "questree-index.json"
FORMAT = 1
_LIBRARIES = ("questree", "colbert-ai", "bm25s", "torch", "transformers")


class FileRecord(BaseModel):
    """A file of the index as it was when the index was finished."""

    model_config = ConfigDict(frozen=True)

    bytes: int
    sha256: str


class CheckpointRecord(BaseModel):
    """The encoder of an index: the name by which it was asked for, and the hash of its files."""

    model_config = ConfigDict(frozen=True)

    name: str
    fingerprint: str


class CorpusRecord(BaseModel):
    """The corpus of an index.

    Attributes:
        name: the file that it was read from.
        sha256: its ``store.corpus_hash``.
        passages: how many.
        skipped: bad lines that were left out.
        filled: passages that fill the encoder's window: what stands beyond it was not read.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    sha256: str
    passages: int
    skipped: int = 0
    filled: int = 0


class Manifest(BaseModel):
    """What an index folder holds and what it was made from."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    kind: str
    settings: dict[str, Any]
    checkpoint: CheckpointRecord | None = None
    corpus: CorpusRecord
    files: dict[str, FileRecord] = {}
    versions: dict[str, str] = {}

    @property
    def fingerprint(self) -> str:
        """Identity of the index (16 hex digits): changes with corpus, checkpoint, kind and settings."""
        encoder = self.checkpoint.fingerprint if self.checkpoint else None
        made_from = [self.format, self.kind, self.settings, encoder, self.corpus.sha256]
        return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16]


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Record every file of a finished index and the libraries' versions; the manifest is written last."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {
        path.relative_to(folder).as_posix(): FileRecord(bytes=path.stat().st_size, sha256=file_hash(path))
        for path in paths
    }
    sealed = manifest.model_copy(update={"files": files, "versions": _versions()})
    (folder / NAME).write_text(sealed.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return sealed


def read_manifest(folder: Path, *, full: bool = False) -> Manifest:
    """The manifest of an index, after a look at its files.

    Args:
        full: compare every file's checksum too, not its size alone.

    Raises:
        IndexRefused: no index there, incomplete, foreign, of a newer format, or damaged.
    """
    if not folder.is_dir():
        raise IndexRefused(f"There is no index at {folder}. Build one: questree index CORPUS --out {folder}")
    try:
        manifest = Manifest.model_validate_json((folder / NAME).read_bytes())
    except FileNotFoundError:
        raise IndexRefused(
            f"{folder} is incomplete or foreign: it has no {NAME}, which is written when an index is finished. "
            "Build it again."
        ) from None
    except (ValidationError, OSError) as problem:
        raise IndexRefused(f"{folder} is foreign or damaged: its {NAME} cannot be read ({problem}).") from problem
    if manifest.format != FORMAT:
        raise IndexRefused(
            f"{folder} is foreign: its format is {manifest.format}, this version of questree reads {FORMAT}."
        )
    for name, record in manifest.files.items():
        _check_file(folder, name, record, full=full)
    return manifest


def _check_file(folder: Path, name: str, record: FileRecord, *, full: bool) -> None:
    path = folder / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise IndexRefused(f"{folder} is foreign: its manifest names a file outside it ({name}).")
    if not path.is_file():
        raise IndexRefused(f"{folder} is damaged: {name} is missing. Build it again.")
    if path.stat().st_size != record.bytes:
        raise IndexRefused(
            f"{folder} is damaged: {name} has {path.stat().st_size} bytes, {record.bytes} when it was built. "
            "Build it again."
        )
    if full and file_hash(path) != record.sha256:
        raise IndexRefused(f"{folder} is damaged: the checksum of {name} differs. Build it again.")


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for library in _LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@contextmanager
def building(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside ``out`` that takes its place when the block ends well, and is gone when not.

    Raises:
        QuestreeError: ``out`` is taken (only an index of ours is ever overwritten), or the disk is full.
    """
    _check_target(out, overwrite=overwrite)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".part", dir=out.parent))
    except OSError as problem:
        raise QuestreeError(f"No folder can be made at {out.parent}: {problem.strerror or problem}.") from problem
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if out.exists():
            _swap(temporary, out)
        else:
            os.replace(temporary, out)
    except Exception as problem:
        if _disk_is_full(problem, out.parent):
            raise QuestreeError(
                f"The disk at {out.parent} is full; nothing was left there. Free some space, or choose another --out."
            ) from problem
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _disk_is_full(problem: Exception, folder: Path) -> bool:
    """Told by the error or, as numpy and torch raise others where a write fails, by the disk."""
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return shutil.disk_usage(folder).free < 1 << 20


def _check_target(out: Path, *, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / NAME).is_file():
        raise QuestreeError(f"{out} exists and is no index of questree's: it is left as it is. Choose another --out.")
    if not overwrite:
        raise QuestreeError(f"{out} already holds an index. Choose another --out, or overwrite it (--overwrite).")


def _swap(new: Path, out: Path) -> None:
    """Put ``new`` where ``out`` is; the old one is deleted when the new one is in place."""
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".old", dir=out.parent))
    os.replace(out, old / out.name)
    try:
        os.replace(new, out)
    except OSError:
        os.replace(old / out.name, out)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
