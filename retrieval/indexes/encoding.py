"""A corpus encoded once, in chunks that outlive an interruption, on one device or on several."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from ...common.errors import IndexRefused
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
from .index_kind import Progress, Report
from .store import PASSAGES, PassageStore
from .workers import encode_on

logger = logging.getLogger(__name__)


def encode_corpus(
    folder: Path,
    encoder: PassageEncoder,
    identity: str,
    *,
    load: Callable[[], PassageEncoder],
    devices: Sequence[str] = (),
    report: Report = lambda _: None,
    size: Callable[[float], float] = lambda _: 0.0,
) -> int:
    """Encode the passages of the index that holds this folder into chunks; those that are there and hold are kept.

    Memory is bounded by a few chunks. What is written does not depend on devices or interruptions.

    Args:
        folder: of the chunks, in the folder of an index that holds its passages already.
        encoder: of this process.
        identity: all that rows depend on but the texts.
        load: makes the encoder in another process; it must be picklable.
        devices: ``cpu``, ``cuda:1``: one process each. None at all: this process.
        report: to be told how far it is.
        size: the bytes that so many rows take in the finished index.

    Returns:
        How many passages fill the encoder's window.
    """
    folder.mkdir(exist_ok=True)
    passages = PassageStore(folder.parent)
    kept = _kept(folder, passages, identity, encoder.dim, report)
    remove_others(folder, kept)
    missing = [number for number in range(chunk_count(len(passages))) if number not in kept]
    told = _Told(report, len(passages), kept, (folder.parent / PASSAGES).stat().st_size, size)
    if devices:
        encode_on(devices, folder, missing, load=load, identity=identity, told=told)
    else:
        for number in missing:
            texts = texts_of(passages, number)
            source = source_of(texts, identity)
            told.chunk(write_chunk(folder, number, texts, encoder=encoder, made_from=source, progress=told.batch))
    remove_others(folder, range(chunk_count(len(passages))))  # also what a process that died left
    return told.filled


def _kept(folder: Path, passages: PassageStore, identity: str, dim: int, report: Report) -> dict[int, ChunkRecord]:
    """The chunks that are there and hold what would be written anew; says why others are not kept."""
    kept, damaged, outdated = {}, [], []
    found = sorted(int(path.name[:6]) for path in folder.glob("[0-9]" * 6 + ".chunk.json"))
    for checked, number in enumerate(found):
        report(Progress("checking what is encoded already (in chunks)", checked, len(found)))
        try:
            record = read_record(folder, number)
        except IndexRefused:
            damaged.append(number)
            continue
        if number >= chunk_count(len(passages)) or record.made_from != source_of(texts_of(passages, number), identity):
            outdated.append(number)
        elif is_whole(folder, number, record, dim):
            kept[number] = record
        else:
            damaged.append(number)
    if damaged:
        logger.warning("%d encoded chunks are damaged and are encoded again: %s.", len(damaged), _some(damaged))
    if outdated:
        logger.warning(
            "%d encoded chunks are of other passages or of another encoder and are encoded again.", len(outdated)
        )
    return kept


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")


class _Told:
    """Counts what is encoded, and tells it."""

    def __init__(
        self, report: Report, total: int, kept: dict[int, ChunkRecord], other_bytes: int, size: Callable[[float], float]
    ) -> None:
        self._report, self._total, self._other_bytes, self._size = report, total, other_bytes, size
        self._kept = self._done = sum(len(record.lengths) for record in kept.values())
        self._rows = sum(sum(record.lengths) for record in kept.values())
        self._counted = self._kept
        self.filled = sum(record.filled for record in kept.values())
        self.batch(0)

    def batch(self, more: int) -> None:
        """So many passages more are encoded."""
        self._done += more
        expected = self._size(self._rows / self._counted * self._total) + self._other_bytes if self._counted else 0
        self._report(Progress("encoding", self._done, self._total, kept=self._kept, bytes=int(expected)))

    def chunk(self, record: ChunkRecord) -> None:
        """A chunk is finished."""
        self._rows += sum(record.lengths)
        self._counted += len(record.lengths)
        self.filled += record.filled
        self.batch(0)
