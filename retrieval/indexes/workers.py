"""Processes that encode on several devices, one for each; the chunk of one that dies is done again, once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from ...common.errors import QuestreeError
from .chunks import ChunkRecord, PassageEncoder, write_chunk
from .contents import PassageStore

_ATTEMPTS = 2

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
        QuestreeError: if two processes died at one chunk.
        Exception: that a process raised.
    """
    waiting, died, threads = list(reversed(chunks)), Counter[int](), max(1, (os.cpu_count() or 1) // len(devices))
    pools = {place: _pool(device, threads) for place, device in enumerate(devices[: len(chunks)])}
    running: dict[Future[ChunkRecord], tuple[int, int]] = {}

    def give(place: int) -> None:
        if waiting:
            number = waiting.pop()
            running[pools[place].submit(_encode, folder, number, load, identity)] = place, number

    try:
        for place in pools:
            give(place)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                place, number = running.pop(future)
                try:
                    finish(future.result())
                except BrokenProcessPool as problem:
                    died[number] += 1
                    if died[number] >= _ATTEMPTS:
                        raise QuestreeError(
                            f"The process that encodes on {devices[place]} died twice at chunk {number} of the "
                            "passages, often for lack of memory. Free some, or name other devices (--device)."
                        ) from problem
                    pools[place] = _pool(devices[place], threads)
                    waiting.append(number)
                give(place)
    finally:
        for pool in pools.values():
            pool.shutdown(cancel_futures=True)  # chunks that are begun are finished, and kept


def _pool(device: str, threads: int) -> ProcessPoolExecutor:
    spawn = get_context("spawn")  # a forked process cannot use a GPU that this one has touched
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=_prepare, initargs=(device, threads))


def _prepare(device: str, threads: int) -> None:
    """Let a process see one device only, before torch is imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told to stop, and stops us
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
