"""Processes that encode on several devices of this machine, one for each."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from .chunks import ChunkRecord, PassageEncoder, write_chunk
from .contents import PassageStore

Load = Callable[[], PassageEncoder]


def encode_on(
    devices: Sequence[str],
    folder: Path,
    chunks: Sequence[int],
    *,
    load: Load,
    identity: str,
    finish: Callable[[ChunkRecord], None],
) -> None:
    """Encode chunks in one process for each device; a free process takes the next chunk.

    A script that calls this needs the guard ``if __name__ == "__main__"``, as with all of multiprocessing.

    Args:
        devices: ``cpu``, ``cuda:1``.
        folder, chunks: where the chunks are written, and which.
        load: makes the encoder in another process: a function of a module, and plain values.
        finish: called with each chunk that is written.

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
                finish(future.result())
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
        return write_chunk(folder, number, PassageStore(folder.parent), _LOADED[0], identity)
    except Exception as problem:
        if isinstance(problem, QuestreeError) or type(problem) is OSError:
            raise
        raise RuntimeError(f"{type(problem).__name__}: {problem}") from None  # others may not be picklable
