"""Workers of a cluster that encode chunks: one for each GPU, or for each group of cores."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .chunks import ChunkRecord, PassageEncoder, encoded, write_chunk
from .cluster import Cluster, ClusterError
from .contents import PassageStore

Records = Generator[ChunkRecord, None, None]


def encode_on_cluster(
    cluster: Cluster, folder: Path, chunks: Sequence[int], *, encoder: PassageEncoder, load: partial[Any], identity: str
) -> Records:
    """Encode chunks on the workers of a cluster: they are sent texts and send back rows, which this process writes.

    Args:
        folder, chunks: where the chunks are written, and which.
        encoder: of this process; rows must be like its own.
        load, identity: as for `encode_corpus`.
    """
    passages = PassageStore(folder.parent)
    given = {"by": f"{load.func.__module__}:{load.func.__name__}", "values": load.args}

    def encode(texts: list[str]) -> tuple[list[int], int, np.ndarray[Any, Any]]:
        return _read(workers.do(json.dumps(texts)), len(texts), encoder)

    def write(number: int) -> ChunkRecord:
        return write_chunk(folder, number, passages, encode, identity)

    with cluster.computing(f"{__name__}:Encoding", given) as workers, ThreadPoolExecutor(workers.number) as threads:
        try:
            yield from threads.map(write, chunks)
        finally:
            workers.end()  # so that no thread waits for one
            threads.shutdown(cancel_futures=True)


def _read(reply: bytes, texts: int, encoder: PassageEncoder) -> tuple[list[int], int, np.ndarray[Any, Any]]:
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
