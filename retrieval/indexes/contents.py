"""The contents of an index folder: its manifest, written last, and the version that the manifest names."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ...common.errors import IndexRefused
from ...common.files import new_file, write_atomically
from ...common.json_files import validate
from ...common.manifests import FileRecord, ManifestKind, checksum_of, installed_versions, json_hash
from ..passage import Passage

T = TypeVar("T")

NAME = "questree-index.json"
PASSAGES, OFFSETS = "passages.jsonl", "passages.offsets.npy"
DOCUMENTS = "documents.json"
"""What was read of a folder of documents, in the version of an index of them."""
FORMAT = 4
_KIND = ManifestKind("index", FORMAT, "build it again", sealed=True, error=IndexRefused)
_LIBRARIES = ("questree", "colbert-ai", "bm25s", "torch", "transformers")


class CheckpointRecord(BaseModel):
    """The encoder of an index.

    Attributes:
        name: by which it was asked for.
        fingerprint: of its weights, tokenizer and settings (16 hex digits).
    """

    model_config = ConfigDict(frozen=True)

    name: str
    fingerprint: str


class CorpusRecord(BaseModel):
    """The corpus of an index.

    Attributes:
        filled: how many passages fill the encoder's window: what stands beyond it was not read.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    sha256: str
    passages: int
    skipped: int = 0
    filled: int = 0


class IndexManifest(BaseModel):
    """What an index folder holds and what it was made from.

    Attributes:
        version: the folder in it that holds the index; another one is being written, or is left from a kill.
        checksum: of all the rest.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    kind: str
    settings: dict[str, Any]
    checkpoint: CheckpointRecord | None = None
    corpus: CorpusRecord
    version: str = Field(default="version-1", pattern=r"^version-\d{1,9}$")
    files: dict[str, FileRecord] = {}
    versions: dict[str, str] = {}
    checksum: str = ""

    @property
    def fingerprint(self) -> str:
        """Return the identity of the index (16 hex digits): it changes with corpus, checkpoint, kind and settings."""
        encoder = self.checkpoint.fingerprint if self.checkpoint else None
        made_from = [self.format, self.kind, self.settings, encoder, self.corpus.sha256]
        return json_hash(made_from, ascii=True)[:16]


def read_manifest(folder: Path, *, full: bool = False) -> IndexManifest:
    """Return the manifest of an index, after a look at its files.

    Args:
        folder: of the index.
        full: compare every file's checksum too, not only its size.

    Raises:
        IndexRefused: if there is no index, or it is incomplete, foreign, of another format, or damaged.
    """
    return read_index(folder, lambda _, manifest: manifest, full=full)


def read_index(folder: Path, read: Callable[[Path, IndexManifest], T], *, full: bool = True) -> T:
    """Return what `read` makes of an index; once more if another process replaced the index meanwhile.

    Args:
        folder: of the index.
        read: is given the folder of the version that holds, and its manifest. What it opens stays as it was, also
            when another version takes its place.
        full: as for `read_manifest`.

    Raises:
        IndexRefused: as `read_manifest` does, and as `read` does.
    """
    manifest = _manifest(folder)
    try:
        _KIND.check_files(folder, manifest.files, full=full)
        return read(folder / manifest.version, manifest)
    except IndexRefused:
        if _manifest(folder) == manifest:
            raise
    return read_index(folder, read, full=full)


def held_version(folder: Path) -> Path | None:
    """Return the folder of the version that an index is; None if there is no index, or its manifest is damaged."""
    try:
        return folder / _manifest(folder).version
    except IndexRefused:
        return None


def _manifest(folder: Path) -> IndexManifest:
    if not folder.is_dir():
        raise IndexRefused(
            f"{folder} is a file. Make an index of it and name that: questree index {quote(str(folder))} --out DIR"
            if folder.is_file()
            else f"There is no index at {folder}. Build one: questree index CORPUS --out {quote(str(folder))}"
        )
    return _KIND.read(folder / NAME, lambda content: validate(IndexManifest, content))


def seal(place: Path, manifest: IndexManifest, without: Collection[str]) -> None:
    """Write the manifest of a version that is finished: from now on the index is this version.

    Args:
        place: the folder of the version, in that of the index.
        without: files and folders there that do not belong to it.
    """
    paths = sorted(p for p in place.rglob("*") if p.is_file() and p.relative_to(place).parts[0] not in without)
    files = {path.relative_to(place.parent).as_posix(): FileRecord.of(path) for path in paths}
    made = {"version": place.name, "files": files, "versions": installed_versions(_LIBRARIES)}
    unsealed = manifest.model_copy(update=made)
    sealed = unsealed.model_copy(update={"checksum": checksum_of(unsealed.model_dump(mode="json"))})
    write_atomically(place.parent / NAME, sealed.model_dump_json(indent=2) + "\n")


def canonical(passage: Passage) -> bytes:
    """Return the line that stands for a passage; the hash of these lines identifies a corpus.

    Of a passage whose source is not known it is that of indexes made before passages had one.
    """
    place = [passage.source, passage.start, passage.end] if passage.source else []
    return json.dumps([passage.id, passage.title, passage.text, *place], ensure_ascii=False).encode() + b"\n"


def corpus_hash(passages: Iterable[Passage]) -> str:
    """Return the SHA-256 over the passages in their order; two readings of one corpus have the same."""
    digest = hashlib.sha256()
    for passage in passages:
        digest.update(canonical(passage))
    return digest.hexdigest()


def write_passages(folder: Path, passages: Iterable[Passage]) -> tuple[int, str]:
    """Write the passages as they come; return their number and their ``corpus_hash``."""
    import numpy as np

    digest, offsets = hashlib.sha256(), array("q", [0])
    with new_file(folder / PASSAGES) as file:
        for passage in passages:
            line = canonical(passage)
            file.write(line)
            digest.update(line)
            offsets.append(offsets[-1] + len(line))
    with new_file(folder / OFFSETS) as file:
        np.save(file, np.asarray(offsets, dtype=np.int64), allow_pickle=False)
    return len(offsets) - 1, digest.hexdigest()


class PassageStore:
    """The passages of an index by position, read from disk when they are asked for; safe in several threads."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        self.folder = folder
        self._lines = np.memmap(folder / PASSAGES, np.uint8, "r")
        self._offsets = np.load(folder / OFFSETS, mmap_mode="r", allow_pickle=False)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, position: int) -> Passage:
        if not 0 <= position < len(self):
            raise IndexError(f"there is no passage {position} among {len(self)}")
        first, end = self._offsets[position : position + 2]
        try:
            id_, title, text, *place = json.loads(self._lines[first:end].tobytes())
            source, begins, ends = place or ("", None, None)
            return Passage(id=id_, title=title, text=text, source=source, start=begins, end=ends)
        except (ValueError, TypeError, RecursionError) as problem:  # forged: it is as it was sealed
            raise IndexRefused(f"{self.folder} is damaged: its passage {position} cannot be read.") from problem

    def __iter__(self) -> Iterator[Passage]:
        return (self[position] for position in range(len(self)))

    def ids(self) -> Iterator[str]:
        """Yield the ids of the passages; a million take a second or two, since their texts are not taken apart."""
        lines = self._lines.data
        for first, end in pairwise(self._offsets.tolist()):
            id_ = bytes(lines[first:end]).partition(b'", "')[0][1:] + b'"'  # as `canonical` writes it
            yield json.loads(id_) if b"\\" in id_ else id_[1:-1].decode()
