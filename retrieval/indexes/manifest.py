"""An index folder and its manifest: written last, so that its existence proves the index complete."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict

from ...common.errors import IndexRefused
from ...common.files import FileRecord, file_hash

NAME = "questree-index.json"
FORMAT = 3
_LIBRARIES = ("questree", "colbert-ai", "bm25s", "torch", "transformers")


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
    """What an index folder holds and what it was made from; ``checksum`` is of all the rest."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    kind: str
    settings: dict[str, Any]
    checkpoint: CheckpointRecord | None = None
    corpus: CorpusRecord
    files: dict[str, FileRecord] = {}
    versions: dict[str, str] = {}
    checksum: str = ""

    def reckoned(self) -> str:
        """The checksum as it should be."""
        return _checksum_of(self.model_dump(mode="json"))

    @property
    def fingerprint(self) -> str:
        """Identity of the index (16 hex digits): changes with corpus, checkpoint, kind and settings."""
        encoder = self.checkpoint.fingerprint if self.checkpoint else None
        made_from = [self.format, self.kind, self.settings, encoder, self.corpus.sha256]
        return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16]


def seal(folder: Path, manifest: Manifest, without: Collection[str] = ()) -> Manifest:
    """Record every file of a finished index and the libraries' versions; the manifest is written last.

    Args:
        without: names in the folder that are no part of the index.
    """
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] not in without)
    files = {
        path.relative_to(folder).as_posix(): FileRecord(bytes=path.stat().st_size, sha256=file_hash(path))
        for path in paths
    }
    told = manifest.model_copy(update={"files": files, "versions": _versions()})
    sealed = told.model_copy(update={"checksum": told.reckoned()})
    (folder / NAME).write_text(sealed.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return sealed


def read_manifest(folder: Path, *, full: bool = False) -> Manifest:
    """The manifest of an index, after a look at its files.

    Args:
        full: compare every file's checksum too, not its size alone.

    Raises:
        IndexRefused: no index there, incomplete, foreign, of another format, or damaged.
    """
    if not folder.is_dir():
        raise IndexRefused(f"There is no index at {folder}. Build one: questree index CORPUS --out {folder}")
    try:
        content = json.loads((folder / NAME).read_bytes())
        manifest = Manifest.model_validate(content)
    except FileNotFoundError:
        raise IndexRefused(
            f"{folder} is incomplete or foreign: it has no {NAME}, which is written when an index is finished. "
            "Build it again."
        ) from None
    except (ValueError, OSError) as problem:  # also of JSON, and of the fields
        raise IndexRefused(f"{folder} is foreign or damaged: its {NAME} cannot be read ({problem}).") from problem
    if manifest.format != FORMAT:
        raise IndexRefused(
            f"{folder} is foreign: its format is {manifest.format}, this version of questree reads {FORMAT}. "
            "Build it again."
        )
    if manifest.checksum != _checksum_of(content):
        raise IndexRefused(f"{folder} is damaged: its {NAME} was changed. Build it again.")
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


def _checksum_of(content: dict[str, Any]) -> str:
    told = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for library in _LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
