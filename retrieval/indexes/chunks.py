"""Embeddings of a corpus on disk, in chunks: each is finished, or it is not there.

A chunk knows what it was made from (its texts and its encoder) and the checksum of what it holds. So chunks of an
interrupted run, or of an index to which passages are added, can be checked and used again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...common.errors import IndexRefused
from ...common.files import replacing
from ...common.manifests import json_hash
from .contents import PassageStore

if TYPE_CHECKING:
    import numpy as np
    import torch

CHUNK = 1024
"""Passages in a chunk: some 30 MB of token embeddings, a quarter of a minute of encoding on two cores."""
_RECORD = ".chunk.json"
ROWS = {"f2": ".f16", "u1": ".u8"}
"""The ends of the names of files of rows, by the rows' type."""


class PassageEncoder(Protocol):
    """A model that turns passages into embeddings: a row for each token, or one for each passage."""

    row_type: str
    """Of the numbers of a row, as numpy names it: f2, or u1 for packed ones."""

    @property
    def filled(self) -> int:
        """Return how many passages, so far, fill the window; what stands beyond it was not read."""
        ...

    @property
    def dim(self) -> int:
        """Return how many numbers a row has."""
        ...

    @property
    def window(self) -> int:
        """Return how many tokens of a passage are read."""
        ...

    def passages(self, texts: Sequence[str], progress: Callable[[int], None]) -> Iterator[torch.Tensor]:
        """Yield one (rows, dim) tensor for each text, in their order, and report how many more are done."""
        ...


@dataclass(frozen=True)
class ChunkRecord:
    """What a chunk holds.

    Attributes:
        made_from: the hash of its texts and of its encoder.
        lengths: the number of rows of each of its passages.
        filled: how many of its passages fill the encoder's window.
        sha256: over all of this and the rows.
    """

    made_from: str
    lengths: list[int]
    filled: int
    sha256: str


def chunk_count(passages: int) -> int:
    """Return how many chunks hold so many passages."""
    return -(-passages // CHUNK)


def chunk_of(position: int) -> int:
    """Return the number of the chunk that holds a passage."""
    return position // CHUNK


def bounds(number: int, passages: int) -> tuple[int, int]:
    """Return the position of a chunk's first passage, and the position after its last."""
    return number * CHUNK, min((number + 1) * CHUNK, passages)


def texts_of(passages: PassageStore, number: int) -> list[str]:
    """Return the texts of a chunk, as the encoder gets them."""
    return [passages[position].shown() for position in range(*bounds(number, len(passages)))]


def source_of(texts: Sequence[str], encoder: str) -> str:
    """Return the hash of what a chunk is made from.

    Args:
        texts: of the chunk.
        encoder: all else that its rows depend on: checkpoint, precision …
    """
    return json_hash([encoder, *texts], ascii=True)


def write_chunk(
    folder: Path,
    number: int,
    texts: Sequence[str],
    encoder: PassageEncoder,
    made_from: str,
    progress: Callable[[int], None],
) -> ChunkRecord:
    """Encode texts into a chunk and return its record, which is written last."""
    chunk = encoded(texts, encoder, progress)
    return store_chunk(folder, number, chunk, made_from=made_from, row_type=encoder.row_type)


@dataclass(frozen=True)
class EncodedChunk:
    """The embeddings of some texts.

    Attributes:
        lengths: the number of rows of each.
        filled: how many of them fill the encoder's window.
        rows: of all of them, one behind the other.
    """

    lengths: list[int]
    filled: int
    rows: bytes | memoryview


def encoded(texts: Sequence[str], encoder: PassageEncoder, progress: Callable[[int], None]) -> EncodedChunk:
    """Encode texts and return their embeddings."""
    import numpy as np

    before = encoder.filled
    matrices = [matrix.numpy() for matrix in encoder.passages(texts, progress)]
    rows = np.ascontiguousarray(np.concatenate(matrices), dtype=encoder.row_type)
    return EncodedChunk([len(matrix) for matrix in matrices], encoder.filled - before, rows.data.cast("B"))


def store_chunk(folder: Path, number: int, chunk: EncodedChunk, *, made_from: str, row_type: str) -> ChunkRecord:
    """Write a chunk and return its record, which is written last."""
    digest = _digest(made_from, chunk.lengths, chunk.filled, chunk.rows)
    record = ChunkRecord(made_from, chunk.lengths, chunk.filled, digest)
    _write(rows_file(folder, number, row_type), chunk.rows)
    _write(_record_file(folder, number), json.dumps(asdict(record)).encode())
    return record


def read_record(folder: Path, number: int) -> ChunkRecord:
    """Return the record of a chunk.

    Raises:
        IndexRefused: if it is missing or damaged.
    """
    path = _record_file(folder, number)
    try:
        return ChunkRecord(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as problem:
        raise IndexRefused(f"{folder.parent} is damaged: {path.name} cannot be read ({problem}).") from problem


def is_whole(folder: Path, number: int, record: ChunkRecord, dim: int, row_type: str = "f2") -> bool:
    """Tell whether the rows of a chunk are those of its record."""
    try:
        rows = read_rows(folder, number, record, dim, row_type)
    except IndexRefused:
        return False
    return _digest(record.made_from, record.lengths, record.filled, rows.data.cast("B")) == record.sha256


def read_rows(folder: Path, number: int, record: ChunkRecord, dim: int, row_type: str = "f2") -> np.ndarray[Any, Any]:
    """Return the (rows, dim) of a chunk, mapped from the disk.

    Raises:
        IndexRefused: if they are missing, or of another size than the record says.
    """
    import numpy as np

    path, shape = rows_file(folder, number, row_type), (sum(record.lengths), dim)
    expected = int(row_type[1]) * prod(shape)
    try:
        if path.stat().st_size != expected:
            raise ValueError(f"it has {path.stat().st_size} bytes of {expected}")
        return np.memmap(path, row_type, "r", shape=shape)
    except (OSError, ValueError, TypeError) as problem:
        raise IndexRefused(f"{folder.parent} is damaged: {path.name} cannot be read ({problem}).") from problem


def remove_others(folder: Path, numbers: Iterable[int], row_type: str = "f2") -> None:
    """Remove all but these chunks from the folder, such as files of a killed writer or of a longer corpus."""
    kept = [(rows_file(folder, number, row_type), _record_file(folder, number)) for number in numbers]
    names = {path.name for paths in kept for path in paths}
    for found in folder.iterdir():
        if found.name not in names:
            found.unlink()


def rows_file(folder: Path, number: int, row_type: str = "f2") -> Path:
    """Return where a chunk's rows are."""
    return folder / f"{number:06d}{ROWS[row_type]}"


def _record_file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}{_RECORD}"


def _digest(made_from: str, lengths: Sequence[int], filled: int, rows: bytes | memoryview) -> str:
    digest = hashlib.sha256(json.dumps([made_from, list(lengths), filled]).encode())
    digest.update(rows)
    return digest.hexdigest()


def _write(path: Path, content: bytes | memoryview) -> None:
    """Write a new file, never an old one in place: an enlarged index shares its files with the former, by links."""
    with replacing(path) as unfinished:
        unfinished.write_bytes(content)
