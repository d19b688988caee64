"""Chunks that workers of a cluster encode: they are sent the texts and send back the rows; this process writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from .chunks import ChunkRecord, PassageEncoder, encoded, source_of, store_chunk, texts_of
from .cluster import Cluster, ClusterError
from .contents import PassageStore

_HEAD = TypeAdapter(tuple[list[int], int])
"""The first line of what comes back: the lengths, and how many texts fill the window. The bytes of the rows follow."""


def encode_on_cluster(
    cluster: Cluster,
    folder: Path,
    chunks: Sequence[int],
    *,
    encoder: PassageEncoder,
    load: partial[Any],
    identity: str,
    finish: Callable[[ChunkRecord], None],
) -> None:
    """Encode chunks on the workers of a cluster; a free worker takes the next chunk.

    Args:
        folder, chunks, load, identity, finish: as for `encode_on`.
        encoder: of this process; rows must be like its own.
    """
    passages = PassageStore(folder.parent)
    given = {"by": f"{load.func.__module__}:{load.func.__name__}", "values": load.args}

    def encode(number: int) -> ChunkRecord:
        texts = texts_of(passages, number)
        lengths, filled, rows = _read(workers.do(json.dumps(texts)), len(texts), encoder)
        record = ChunkRecord.of(source_of(texts, identity), lengths, filled, rows)
        store_chunk(folder, number, record, rows, encoder.row_type)
        return record

    with cluster.computing(f"{__name__}:Encoding", given) as workers, ThreadPoolExecutor(workers.number) as threads:
        try:
            for record in threads.map(encode, chunks):
                finish(record)
        finally:
            workers.end()  # so that no thread waits for one
            threads.shutdown(cancel_futures=True)


def _read(reply: bytes, texts: int, encoder: PassageEncoder) -> tuple[list[int], int, bytes]:
    """Return the chunk that a worker sent back: its lengths, how many texts fill the window, and its rows."""
    line, _, rows = reply.partition(b"\n")
    try:
        lengths, filled = _HEAD.validate_json(line)
        wanted = sum(lengths) * encoder.dim * int(encoder.row_type[1])
        if len(lengths) != texts or min(lengths) < 1 or len(rows) != wanted:
            raise ValueError(f"it holds {len(lengths)} passages and {len(rows)} bytes, of {texts} and {wanted}")
    except ValueError as error:
        raise ClusterError(f"A worker sent back what is no chunk of {texts} passages: {error}.") from error
    return lengths, filled, rows


class Encoding:
    """What a worker does: it encodes the texts of chunks."""

    def __init__(self, given: dict[str, Any]):
        module, _, name = given["by"].partition(":")
        self._encoder: PassageEncoder = getattr(import_module(module), name)(*given["values"])
        self._thread = ThreadPoolExecutor(1)

    def start(self, texts: str) -> Future[bytes]:
        """Begin to encode the texts of a chunk; return its rows to come, behind a line of JSON."""
        return self._thread.submit(self._encode, json.loads(texts))

    def _encode(self, texts: list[str]) -> bytes:
        lengths, filled, rows = encoded(texts, self._encoder)
        return b"".join([_HEAD.dump_json((lengths, filled)), b"\n", rows])
