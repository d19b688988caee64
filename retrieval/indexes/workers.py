"""Processes that encode chunks: one for each of several devices of this machine, or the workers of a cluster."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import QuestreeError
from .chunks import ChunkRecord, PassageEncoder, encoded, write_chunk
from .cluster import Cluster, ClusterError
from .contents import PassageStore

Load = Callable[[], PassageEncoder]
Records = Generator[ChunkRecord, None, None]


def encode_on(devices: Sequence[str], folder: Path, chunks: Sequence[int], *, load: Load, identity: str) -> Records:
    """Encode chunks in one process for each device, and yield those that are written; a free process takes the next.

    A script that calls this needs the guard ``if __name__ == "__main__"``, as with all of multiprocessing.

    Args:
        devices: ``cpu``, ``cuda:1``.
        folder, chunks: where the chunks are written, and which.
        load: makes the encoder in another process: a function of a module, and plain values.

    Raises:
        Exception: that a process raised.
    """
    spawn = get_context("spawn")  # a forked process cannot use a GPU that this one has touched
    threads, free = max(1, (os.cpu_count() or 1) // len(devices)), spawn.SimpleQueue()
    for device in devices:
        free.put(device)
    with ProcessPoolExecutor(len(devices), mp_context=spawn, initializer=_prepare, initargs=(free, threads)) as pool:
        begun = [pool.submit(_encode, folder, number, load, identity) for number in chunks]
        try:
            for future in as_completed(begun):
                yield future.result()
        except BrokenProcessPool as problem:
            raise QuestreeError(
                f"A process that encodes on {' or '.join(dict.fromkeys(devices))} died, often for lack of memory. Free "
                "some, or name other devices (--device)."
            ) from problem
        finally:
            pool.shutdown(cancel_futures=True)  # chunks that are begun are finished, and kept


def _prepare(free: Any, threads: int) -> None:
    """Let a process see one device only, before torch is imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told to stop, and stops us
    device = free.get()
    os.environ["CUDA_VISIBLE_DEVICES"] = _visible(device)
    if device == "cpu":
        os.environ["OMP_NUM_THREADS"] = str(threads)


def _visible(device: str) -> str:
    """Return ``CUDA_VISIBLE_DEVICES`` for a process that may see only this device."""
    if device == "cpu":
        return ""
    number = int(device.removeprefix("cuda:"))
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",")[number] if given else str(number)


_LOADED: list[PassageEncoder] = []
"""The encoder of this process, once it is loaded."""


def _encode(folder: Path, number: int, load: Load, identity: str) -> ChunkRecord:
    try:
        if not _LOADED:
            _LOADED.append(load())
        return write_chunk(folder, number, PassageStore(folder.parent), partial(encoded, encoder=_LOADED[0]), identity)
    except Exception as problem:
        if isinstance(problem, QuestreeError) or type(problem) is OSError:
            raise
        raise RuntimeError(f"{type(problem).__name__}: {problem}") from None  # others may not be picklable


def encode_on_cluster(
    cluster: Cluster, folder: Path, chunks: Sequence[int], *, encoder: PassageEncoder, load: partial[Any], identity: str
) -> Records:
    """Encode chunks on the workers of a cluster: they are sent texts and send back rows, which this process writes.

    Args:
        folder, chunks, load, identity: as for `encode_on`.
        encoder: of this process; rows must be like its own.
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
