"""Embeddings of a corpus on disk, in chunks: each is finished, or it is not there.

A chunk knows what it was made from (its texts and its encoder) and the checksum of what it holds. So chunks of an
interrupted run, or of an index to which passages are added, can be checked and used again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...common.files import file_hash, replacing
from ...common.manifests import json_hash
from .contents import PassageStore

if TYPE_CHECKING:
    import torch

CHUNK = 1024
"""Passages in a chunk: some 30 MB of token embeddings, a quarter of a minute of encoding on two cores."""
ROWS = ".npy"
"""The end of the names of files of rows."""
Encoded = tuple[list[int], int, "np.ndarray[Any, Any]"]
"""The number of rows of each text, how many texts fill the encoder's window, and all rows one behind the other."""


class PassageEncoder(Protocol):
    """A model that turns passages into embeddings: a row for each token, or one for each passage.

    Attributes:
        row_type: of the numbers of a row, as numpy names it: f2, or u1 for packed ones.
        dim: how many numbers a row has.
        window: how many tokens of a passage are read.
    """

    row_type: str
    dim: int
    window: int

    @property
    def filled(self) -> int:
        """Return how many passages, so far, fill the window; what stands beyond it was not read."""

    def passages(self, texts: Sequence[str], progress: Callable[[int], None]) -> Iterator[torch.Tensor]:
        """Yield one (rows, dim) tensor for each text, in their order, and report how many more are done."""


@dataclass(frozen=True)
class ChunkRecord:
    """What a chunk holds.

    Attributes:
        made_from: the hash of its texts and of its encoder.
        lengths: the number of rows of each of its passages.
        filled: how many of its passages fill the encoder's window.
        sha256: over all of this and the file of its rows.
    """

    made_from: str
    lengths: list[int]
    filled: int
    sha256: str

    @classmethod
    def of(cls, made_from: str, lengths: list[int], filled: int, rows: Path) -> ChunkRecord:
        """Return the record of a file of rows."""
        return cls(made_from, lengths, filled, json_hash([made_from, lengths, filled, file_hash(rows)]))


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


def chunk_hash(texts: Sequence[str], encoder: str) -> str:
    """Return the hash of what a chunk is made from.

    Args:
        texts: of the chunk.
        encoder: all else that its rows depend on: checkpoint, precision …
    """
    return json_hash([encoder, *texts], ascii=True)


def encoded(texts: Sequence[str], encoder: PassageEncoder, progress: Callable[[int], None] = lambda _: None) -> Encoded:
    """Return the rows of texts, as the encoder makes them."""
    before = encoder.filled
    matrices = [matrix.numpy() for matrix in encoder.passages(texts, progress)]
    rows = np.ascontiguousarray(np.concatenate(matrices), dtype=encoder.row_type)
    return [len(matrix) for matrix in matrices], encoder.filled - before, rows


def write_chunk(
    folder: Path, passages: PassageStore, identity: str, encode: Callable[[list[str]], Encoded], number: int
) -> ChunkRecord:
    """Write what `encode` makes of the texts of a chunk, as `encoded` does; the record, which is returned, last."""
    texts = texts_of(passages, number)
    lengths, filled, rows = encode(texts)
    # new files, never old ones in place: an enlarged index shares its files with the former, by links
    with replacing(rows_file(folder, number)) as unfinished, unfinished.open("wb") as file:
        np.save(file, rows, allow_pickle=False)
    record = ChunkRecord.of(chunk_hash(texts, identity), lengths, filled, rows_file(folder, number))
    with replacing(_record_file(folder, number)) as unfinished:
        unfinished.write_text(json.dumps(asdict(record)))
    return record


def read_record(folder: Path, number: int) -> ChunkRecord:
    """Return the record of a chunk."""
    return ChunkRecord(**json.loads(_record_file(folder, number).read_bytes()))


def read_rows(folder: Path, number: int) -> np.ndarray[Any, Any]:
    """Return the (rows, dim) of a chunk, mapped from the disk."""
    rows: np.ndarray[Any, Any] = np.load(rows_file(folder, number), mmap_mode="r", allow_pickle=False)
    return rows


def remove_others(folder: Path, numbers: Iterable[int]) -> None:
    """Remove all but these chunks from the folder, such as files of a killed writer or of a longer corpus."""
    kept = [path for number in numbers for path in (rows_file(folder, number), _record_file(folder, number))]
    for found in set(folder.iterdir()).difference(kept):
        found.unlink()


def rows_file(folder: Path, number: int) -> Path:
    """Return where a chunk's rows are."""
    return folder / f"{number:06d}{ROWS}"


def _record_file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.chunk.json"
