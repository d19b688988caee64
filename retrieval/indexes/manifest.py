"""An index folder and its manifest: written last, so that its existence proves the index complete."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ...common.errors import IndexRefused
from ...common.files import write_atomically
from ...common.manifests import FileRecord, ManifestKind, checksum_of, json_hash

NAME = "questree-index.json"
FORMAT = 3
_KIND = ManifestKind("index", FORMAT, "build it again", sealed=True, error=IndexRefused)
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

    @property
    def fingerprint(self) -> str:
        """Identity of the index (16 hex digits): changes with corpus, checkpoint, kind and settings."""
        encoder = self.checkpoint.fingerprint if self.checkpoint else None
        made_from = [self.format, self.kind, self.settings, encoder, self.corpus.sha256]
        return json_hash(made_from, ascii=True)[:16]


def seal(folder: Path, manifest: Manifest, without: Collection[str] = ()) -> Manifest:
    """Record every file of a finished index and the libraries' versions; the manifest is written last.

    Args:
        without: names in the folder that are no part of the index.
    """
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] not in without)
    files = {path.relative_to(folder).as_posix(): FileRecord.of(path) for path in paths}
    unsealed = manifest.model_copy(update={"files": files, "versions": _versions()})
    sealed = unsealed.model_copy(update={"checksum": checksum_of(unsealed.model_dump(mode="json"))})
    write_atomically(folder / NAME, sealed.model_dump_json(indent=2) + "\n")
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
    manifest = _KIND.read(folder / NAME, Manifest.model_validate)
    _KIND.check_files(folder, manifest.files, full=full)
    return manifest


def _versions() -> dict[str, str]:
    found = {}
    for library in _LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
