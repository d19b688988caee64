"""A corpus encoded once, in chunks that outlive an interruption: in this process, or on a cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ...common.files import make_folder
from .chunks import (
    ChunkRecord,
    PassageEncoder,
    chunk_count,
    encoded,
    is_whole,
    read_record,
    remove_others,
    source_of,
    texts_of,
    write_chunk,
)
from .contents import PASSAGES, PassageStore
from .index_kind import BuildProgress, Order, Report
from .workers import encode_on_cluster

logger = logging.getLogger(__name__)


def encode_corpus(order: Order, name: str, encoder: PassageEncoder, identity: str, load: partial[Any]) -> int:
    """Encode the passages of an order into chunks; chunks that are there and still hold are kept.

    It needs the memory of a few chunks. What is written does not depend on workers or interruptions.

    Args:
        order: its folder holds its passages already; without a cluster this process encodes.
        name: of the chunks' folder in that folder.
        identity: all that a chunk depends on beside its passages: checkpoint, precision …
        load: makes the encoder in another process: a function of a module, and plain values.

    Returns:
        How many passages fill the encoder's window.
    """
    folder, passages = order.folder / name, order.passages
    make_folder(folder)
    kept = _kept(folder, passages, identity, order.report)
    remove_others(folder, kept)
    count = _Count(order, encoder, kept.values())
    if missing := [number for number in range(chunk_count(len(passages))) if number not in kept]:
        if order.cluster:
            records = encode_on_cluster(order.cluster, folder, missing, encoder=encoder, load=load, identity=identity)
        else:
            encode = partial(encoded, encoder=encoder, progress=count.add)
            records = (write_chunk(folder, number, passages, encode, identity) for number in missing)
        with closing(records):  # which ends the workers
            for record in records:
                count.finish(record)
    if count.filled:
        said = "%d passages fill the window of %d tokens; what stands beyond it is not searched."
        logger.warning(said, count.filled, encoder.window)
    return count.filled


def _kept(folder: Path, passages: PassageStore, identity: str, report: Report) -> dict[int, ChunkRecord]:
    """Return the chunks that hold what would be written now; warn of those that do not."""
    kept: dict[int, ChunkRecord] = {}
    found = sorted(int(path.name[:6]) for path in folder.glob("[0-9]" * 6 + ".chunk.json"))
    for checked, number in enumerate(found):
        report(BuildProgress("checking what is encoded already (in chunks)", checked, len(found)))
        with suppress(OSError, ValueError, TypeError):  # it is damaged
            record = read_record(folder, number)
            if record.made_from == source_of(texts_of(passages, number), identity) and is_whole(folder, number, record):
                kept[number] = record
    if len(kept) < len(found):
        logger.warning(
            "%d encoded chunks are damaged, or of other passages or another encoder, and are encoded again.",
            len(found) - len(kept),
        )
    return kept


class _Count:
    """The count of what is encoded, and the report of it."""

    def __init__(self, order: Order, encoder: PassageEncoder, kept: Iterable[ChunkRecord]) -> None:
        self._order, self._row_bytes = order, encoder.dim * int(encoder.row_type[1])
        self._finished = self._rows = self._begun = self.filled = self._kept = 0
        for record in kept:
            self._add(record)
        self._kept = self._finished
        self.add(0)

    def _add(self, record: ChunkRecord) -> None:
        self._finished += len(record.lengths)
        self._rows += sum(record.lengths)
        self.filled += record.filled

    def add(self, more: int) -> None:
        """Count so many passages more of a chunk that is not finished."""
        self._begun += more
        total, expected = len(self._order.passages), 0
        if self._finished:
            texts = (self._order.folder / PASSAGES).stat().st_size
            expected = texts + self._rows * self._row_bytes * total // self._finished
        done = self._finished + self._begun
        self._order.report(BuildProgress("encoding", done, total, kept=self._kept, bytes=expected))

    def finish(self, record: ChunkRecord) -> None:
        """Count a chunk that is finished."""
        self._add(record)
        self._begun = 0
        self.add(0)
