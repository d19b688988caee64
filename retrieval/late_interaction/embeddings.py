"""Token embeddings of a corpus: encoded into chunks on disk, and read from there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import IndexRefused, QuestreeError
from ...common.names import unknown_name
from ..indexes.chunks import bounds, chunk_count, chunk_of, read_record, read_rows
from ..indexes.encoding import encode_corpus
from ..indexes.index_kind import Order, Written
from ..indexes.manifest import CheckpointRecord, Manifest
from .checkpoint import checkpoint_of, find_checkpoint
from .encoder import Encoder

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

FOLDER = "embeddings"
Chunk = tuple[int, "np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]
"""A run of passages: the first of them, their (passages,) lengths, and their (rows, dim) float16."""


def encode(order: Order, row_bytes: Callable[[int], float]) -> tuple[Encoder, Embeddings, Written]:
    """Encode the passages of an order into its folder.

    Args:
        order: what to write.
        row_bytes: what an embedding of so many dimensions takes in the finished index.

    Raises:
        CheckpointError: the checkpoint cannot be had or loaded.
        QuestreeError: there is no such device.
    """
    devices = _devices(order.devices)
    encoder = Encoder.load(find_checkpoint(order.checkpoint), order.precision)
    checkpoint, folder = encoder.checkpoint, order.folder / FOLDER
    settings = {"dim": encoder.dim, "window": encoder.window, "precision": encoder.precision}
    filled = encode_corpus(
        folder,
        encoder,
        f"{checkpoint.fingerprint} {settings}",
        load=partial(Encoder.load, checkpoint, encoder.precision),
        devices=devices,
        report=order.report,
        size=lambda rows: rows * row_bytes(encoder.dim),
    )
    if filled:
        logger.warning(
            "%d passages fill the window of %d tokens; what stands beyond it is not searched.", filled, encoder.window
        )
    record = CheckpointRecord(name=checkpoint.name, fingerprint=checkpoint.fingerprint)
    return encoder, Embeddings(folder, encoder.dim, len(order.passages)), Written(settings, record, filled)


def _devices(named: Sequence[str]) -> Sequence[str]:
    """The devices named, or every GPU where there are several.

    Raises:
        QuestreeError: a name that stands for no device of this machine.
    """
    import torch

    there = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    for name in named:
        if name not in ("cpu", *there):
            raise QuestreeError(unknown_name("device", name, ["cpu", *there]))
    return named or (there if len(there) > 1 else ())


def order_again(manifest: Manifest) -> dict[str, Any]:
    """The order by which a larger index is made like this one.

    Raises:
        CheckpointError: its checkpoint cannot be had.
        IndexRefused: it is another now.
    """
    checkpoint_of("The index", manifest, None)
    return {"checkpoint": manifest.checkpoint and manifest.checkpoint.name, "precision": manifest.settings["precision"]}


def encoder_of(folder: Path, manifest: Manifest, checkpoint: str | Path | None) -> Encoder:
    """The encoder of an index.

    Raises:
        IndexRefused: the checkpoint found is not the one by which the index was built.
        CheckpointError: it cannot be had or loaded.
    """
    return Encoder.load(checkpoint_of(str(folder), manifest, checkpoint))


class Embeddings:
    """The embeddings of a corpus, mapped into memory, not read.

    Attributes:
        dim: of an embedding.
        lengths: (passages,) rows of each passage, one at least.
        starts: (passages + 1,) where each passage's rows begin, and the number of all rows.
    """

    def __init__(self, folder: Path, dim: int, passages: int) -> None:
        import numpy as np

        self.dim = dim
        records = [read_record(folder, number) for number in range(chunk_count(passages))]
        self._chunks = [read_rows(folder, number, record, dim) for number, record in enumerate(records)]
        lengths = [np.array(record.lengths, dtype=np.int64) for record in records]
        self.lengths: np.ndarray[Any, Any] = np.concatenate(lengths)
        self.starts: np.ndarray[Any, Any] = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        if len(self.lengths) != passages or (self.lengths < 1).any():
            raise IndexRefused(f"{folder.parent} is damaged: its embeddings are not of its passages.")

    def __len__(self) -> int:
        return int(self.starts[-1])

    def of(self, position: int) -> np.ndarray[Any, Any]:
        """The (rows, dim) float16 of a passage."""
        number = chunk_of(position)
        first = self.starts[bounds(number, len(self.lengths))[0]]
        return self._chunks[number][self.starts[position] - first : self.starts[position + 1] - first]

    def chunks(self) -> Iterator[Chunk]:
        """The chunks, in their order."""
        for number, rows in enumerate(self._chunks):
            first, last = bounds(number, len(self.lengths))
            yield first, self.lengths[first:last], rows
