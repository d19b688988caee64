"""Token embeddings of a corpus: encoded into chunks on disk, and read from there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoints import EMBEDDED, checkpoint_of
from ..indexes.chunks import PassageEncoder, bounds, chunk_count, chunk_of, read_record, read_rows
from ..indexes.contents import CheckpointRecord, IndexManifest
from ..indexes.encoding import encode_corpus
from ..indexes.index_kind import Order, WrittenIndex
from .checkpoint import late_checkpoint
from .embedded_queries import EmbeddedQueries
from .encoder import Encoder
from .packed_rows import PackingEncoder

FOLDER = "embeddings"
Chunk = tuple[int, "np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]
"""A run of passages: the first of them, their (passages,) lengths, and their (rows, dim), on disk."""


def encode(order: Order, folder: str = FOLDER, nbits: int | None = None) -> WrittenIndex:
    """Encode the passages of an order into its folder; return what the manifest says.

    Args:
        nbits: for each dimension of a packed row; None for rows of float16.
    """
    encoder = Encoder.load(late_checkpoint(order.checkpoint), order.precision)
    checkpoint = encoder.checkpoint
    settings = {"dim": encoder.dim, "window": encoder.window, "precision": encoder.precision}
    identity = f"{checkpoint.fingerprint} {settings}" + (f" {nbits} bits" if nbits else "")
    load = partial(_loaded, checkpoint.name, checkpoint.fingerprint, encoder.precision, nbits)
    filled = encode_corpus(order, folder, _packing(encoder, nbits), identity, load)
    return WrittenIndex(settings, checkpoint, filled)


def _loaded(name: str, fingerprint: str, precision: str, nbits: int | None) -> PassageEncoder:
    """Return what encodes chunks in another process."""
    built_with = CheckpointRecord(name=name, fingerprint=fingerprint)
    return _packing(Encoder.load(checkpoint_of("The index", built_with, late_checkpoint), precision), nbits)


def _packing(encoder: Encoder, nbits: int | None) -> PassageEncoder:
    return encoder if nbits is None else PackingEncoder(encoder, nbits)


def encoder_of(folder: Path, manifest: IndexManifest) -> Encoder:
    """Return the encoder of an index."""
    found = checkpoint_of(folder, manifest.checkpoint, late_checkpoint)
    return EmbeddedQueries(found) if found.name == EMBEDDED else Encoder.load(found)


class Embeddings:
    """The embeddings of a corpus, read from disk when they are asked for.

    Attributes:
        dim: how many numbers a row has.
        lengths: (passages,) the number of rows of each passage, one at least.
        starts: (passages + 1,) where each passage's rows begin, and the number of all rows.
    """

    def __init__(self, folder: Path, passages: int) -> None:
        lengths = [np.array(read_record(folder, number).lengths) for number in range(chunk_count(passages))]
        self._rows = [read_rows(folder, number) for number in range(len(lengths))]
        self.dim = int(self._rows[0].shape[1])
        self.lengths: np.ndarray[Any, Any] = np.concatenate(lengths)
        self.starts: np.ndarray[Any, Any] = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def of(self, position: int) -> np.ndarray[Any, Any]:
        """Return the (rows, dim) of a passage."""
        number = chunk_of(position)
        first = self.starts[bounds(number, len(self.lengths))[0]]
        return self._rows[number][self.starts[position] - first : self.starts[position + 1] - first]

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, in their order."""
        for number in range(chunk_count(len(self.lengths))):
            first, last = bounds(number, len(self.lengths))
            yield first, self.lengths[first:last], self._rows[number]
