"""A corpus encoded once, in chunks that outlive an interruption, on one device or on several."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ...common.errors import IndexRefused
from ...common.files import make_folder
from .chunks import (
    ChunkRecord,
    PassageEncoder,
    chunk_count,
    is_whole,
    read_record,
    remove_others,
    source_of,
    texts_of,
    write_chunk,
)
from .cluster import Cluster
from .contents import PASSAGES, PassageStore
from .index_kind import BuildProgress, Report
from .remote_chunks import encode_on_cluster
from .workers import encode_on

logger = logging.getLogger(__name__)


def encode_corpus(
    folder: Path,
    encoder: PassageEncoder,
    identity: str,
    *,
    load: partial[Any],
    devices: Sequence[str] = (),
    cluster: Cluster | None = None,
    report: Report = lambda _: None,
    size: Callable[[float], float] = lambda _: 0.0,
) -> int:
    """Encode the passages of an index into chunks; chunks that are there and still hold are kept.

    It needs the memory of a few chunks. What is written does not depend on devices or interruptions.

    Args:
        folder: of the chunks, in the folder of an index that holds its passages already.
        load: makes the encoder in another process: a function of a module, and plain values.
        devices: ``cpu``, ``cuda:1``: a process for each. If none is named, this process encodes.
        report: called with how far it is.
        size: gives the bytes that so many rows take in the finished index.

    Returns:
        How many passages fill the encoder's window.
    """
    make_folder(folder)
    passages = PassageStore(folder.parent)
    kept = _kept(folder, passages, encoder, identity, report)
    remove_others(folder, kept, encoder.row_type)
    missing = [number for number in range(chunk_count(len(passages))) if number not in kept]
    count = _Count(report, len(passages), kept, (folder.parent / PASSAGES).stat().st_size, size)
    order: dict[str, Any] = {"load": load, "identity": identity, "finish": count.finish}
    if cluster and missing:
        encode_on_cluster(cluster, folder, missing, encoder=encoder, **order)
    elif devices and missing:
        encode_on(devices, folder, missing, **order)
    else:
        for number in missing:
            count.finish(write_chunk(folder, number, passages, encoder, identity, count.add))
    remove_others(folder, range(chunk_count(len(passages))), encoder.row_type)  # also what a dead process left
    if count.filled:
        logger.warning(
            "%d passages fill the window of %d tokens; what stands beyond it is not searched.",
            count.filled,
            encoder.window,
        )
    return count.filled


def _kept(
    folder: Path, passages: PassageStore, encoder: PassageEncoder, identity: str, report: Report
) -> dict[int, ChunkRecord]:
    """Return the chunks that hold what would be written now; warn of those that do not."""
    kept: dict[int, ChunkRecord] = {}
    found = sorted(int(path.name[:6]) for path in folder.glob("[0-9]" * 6 + ".chunk.json"))
    for checked, number in enumerate(found):
        report(BuildProgress("checking what is encoded already (in chunks)", checked, len(found)))
        with suppress(IndexRefused):
            record, made_from = read_record(folder, number), source_of(texts_of(passages, number), identity)
            if record.made_from == made_from and is_whole(folder, number, record, encoder.dim, encoder.row_type):
                kept[number] = record
    if len(kept) < len(found):
        logger.warning(
            "%d encoded chunks are damaged, or of other passages or another encoder, and are encoded again.",
            len(found) - len(kept),
        )
    return kept


class _Count:
    """The count of what is encoded, and the report of it."""

    def __init__(
        self, report: Report, total: int, kept: dict[int, ChunkRecord], other_bytes: int, size: Callable[[float], float]
    ) -> None:
        self._report, self._total, self._other_bytes, self._size = report, total, other_bytes, size
        self._kept = self._finished = sum(len(record.lengths) for record in kept.values())
        self._rows = sum(sum(record.lengths) for record in kept.values())
        self._begun = 0
        self.filled = sum(record.filled for record in kept.values())
        self.add(0)

    def add(self, more: int) -> None:
        """Count so many passages more of a chunk that is not finished."""
        self._begun += more
        done, expected = self._finished + self._begun, 0.0
        if self._finished:
            expected = self._size(self._rows / self._finished * self._total) + self._other_bytes
        self._report(BuildProgress("encoding", done, self._total, kept=self._kept, bytes=int(expected)))

    def finish(self, record: ChunkRecord) -> None:
        """Count a chunk that is finished."""
        self._rows += sum(record.lengths)
        self._finished += len(record.lengths)
        self.filled += record.filled
        self._begun = 0
        self.add(0)
