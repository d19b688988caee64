"""The passages of an index, kept in its folder: JSON lines and where each of them begins."""

from __future__ import annotations

import hashlib
import json
import mmap
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...common.errors import IndexRefused
from ..passage import Passage

PASSAGES, OFFSETS = "passages.jsonl", "passages.offsets.npy"


def canonical(passage: Passage) -> bytes:
    """The line that stands for a passage; a corpus is known by the hash of these."""
    return json.dumps([passage.id, passage.title, passage.text], ensure_ascii=False).encode() + b"\n"


def corpus_hash(passages: Iterable[Passage]) -> str:
    """SHA-256 over the passages in their order: what two readings of one corpus have in common."""
    digest = hashlib.sha256()
    for passage in passages:
        digest.update(canonical(passage))
    return digest.hexdigest()


def write_passages(folder: Path, passages: Iterable[Passage]) -> tuple[int, str]:
    """Write the passages as they come; their number, and their ``corpus_hash``."""
    import numpy as np

    digest, offsets = hashlib.sha256(), array("q", [0])
    with (folder / PASSAGES).open("wb") as file:
        for passage in passages:
            line = canonical(passage)
            file.write(line)
            digest.update(line)
            offsets.append(offsets[-1] + len(line))
    np.save(folder / OFFSETS, np.asarray(offsets, dtype=np.int64), allow_pickle=False)
    return len(offsets) - 1, digest.hexdigest()


class PassageStore:
    """The passages of an index by position, read from disk as they are asked for; safe in several threads."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        try:
            with (folder / PASSAGES).open("rb") as file:
                self._lines = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._offsets = np.load(folder / OFFSETS, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as problem:
            raise IndexRefused(f"{folder} is damaged: its passages cannot be read ({problem}).") from problem

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, position: int) -> Passage:
        id_, title, text = json.loads(self._lines[self._offsets[position] : self._offsets[position + 1]])
        return Passage(id=id_, title=title, text=text)

    def __iter__(self) -> Iterator[Passage]:
        return (self[position] for position in range(len(self)))
