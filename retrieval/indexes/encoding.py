"""A corpus encoded once, in chunks that outlive an interruption: in this process, or on a cluster.

The workers of a cluster, one for each GPU or for each group of cores, are sent texts and send back rows.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...common.files import make_folder
from .chunks import (
    ChunkRecord,
    Encoded,
    PassageEncoder,
    chunk_count,
    chunk_hash,
    encoded,
    read_record,
    remove_others,
    rows_file,
    texts_of,
    write_chunk,
)
from .cluster import Cluster, ClusterError
from .contents import PASSAGES, PassageStore
from .index_kind import BuildProgress, Order, Report
from .known_rows import KnownRows

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
        known = KnownRows(order.former, name, identity).rows if order.documents else None

        def write(encode: Callable[[list[str]], Encoded], number: int) -> ChunkRecord:
            by_groups = partial(known, encode) if known else encode
            return write_chunk(folder, passages, identity, by_groups, number)

        if order.cluster:
            records = _on_cluster(order.cluster, load, encoder, write, missing)
        else:
            encode = partial(encoded, encoder=encoder, progress=count.add)
            records = (write(encode, number) for number in missing)
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
            record, source = read_record(folder, number), chunk_hash(texts_of(passages, number), identity)
            if record == ChunkRecord.of(source, record.lengths, record.filled, rows_file(folder, number)):
                kept[number] = record
    if len(kept) < len(found):
        logger.warning(
            "%d encoded chunks are damaged, or of other passages or another encoder, and are encoded again.",
            len(found) - len(kept),
        )
    return kept


class _Count:
    """The count of what is encoded, and the report of it."""

    def __init__(self, order: Order, encoder: PassageEncoder, kept: Collection[ChunkRecord]) -> None:
        self._order, self._row_bytes = order, encoder.dim * int(encoder.row_type[1])
        self._finished = self._rows = self._begun = self.filled = 0
        self._kept = sum(len(record.lengths) for record in kept)
        self.finish(*kept)

    def add(self, more: int) -> None:
        """Count so many passages more of a chunk that is not finished."""
        self._begun += more
        total, expected = len(self._order.passages), 0
        if self._finished:
            texts = (self._order.folder / PASSAGES).stat().st_size
            expected = texts + self._rows * self._row_bytes * total // self._finished
        done = self._finished + self._begun
        self._order.report(BuildProgress("encoding", done, total, kept=self._kept, bytes=expected))

    def finish(self, *records: ChunkRecord) -> None:
        """Count chunks that are finished."""
        self._finished += sum(len(record.lengths) for record in records)
        self._rows += sum(sum(record.lengths) for record in records)
        self.filled += sum(record.filled for record in records)
        self._begun = 0
        self.add(0)


def _on_cluster(
    cluster: Cluster,
    load: partial[Any],
    encoder: PassageEncoder,
    write: Callable[[Callable[[list[str]], Encoded], int], ChunkRecord],
    chunks: Sequence[int],
) -> Generator[ChunkRecord, None, None]:
    """Write chunks that the workers of a cluster encode; their rows must be like those of this process's encoder."""
    given = {"by": f"{load.func.__module__}:{load.func.__name__}", "values": load.args}

    def encode(texts: list[str]) -> Encoded:
        return _read(workers.do(json.dumps(texts)), len(texts), encoder)

    with cluster.computing(f"{__name__}:Encoding", given) as workers, ThreadPoolExecutor(workers.number) as threads:
        try:
            yield from threads.map(partial(write, encode), chunks)
        finally:
            workers.end()  # so that no thread waits for one
            threads.shutdown(cancel_futures=True)


def _read(reply: bytes, texts: int, encoder: PassageEncoder) -> Encoded:
    """Return the chunk that a worker sent back: its lengths, how many texts fill the window, and its rows."""
    try:
        with np.load(io.BytesIO(reply), allow_pickle=False) as sent:
            lengths, filled, rows = sent["lengths"].tolist(), int(sent["filled"]), sent["rows"]
        wanted = (sum(lengths), encoder.dim)
        if len(lengths) != texts or min(lengths) < 1 or rows.shape != wanted or rows.dtype != encoder.row_type:
            raise ValueError(f"it holds {len(lengths)} passages and {rows.shape} numbers, of {texts} and {wanted}")
    except Exception as error:  # numpy and zipfile raise many kinds
        raise ClusterError(f"A worker sent back what is no chunk of {texts} passages: {error}.") from error
    return lengths, filled, rows


class Encoding:
    """What a worker does: it encodes the texts of a chunk, which are JSON, and returns numpy's archive of its rows."""

    def __init__(self, given: dict[str, Any]):
        module, _, name = given["by"].partition(":")
        self._encoder: PassageEncoder = getattr(import_module(module), name)(*given["values"])

    def __call__(self, texts: str) -> bytes:
        """Encode the texts of a chunk."""
        lengths, filled, rows = encoded(json.loads(texts), self._encoder)
        np.savez(sent := io.BytesIO(), lengths=lengths, filled=filled, rows=rows)
        return sent.getvalue()
