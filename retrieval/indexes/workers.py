"""Encoding on several devices: a process for each, watched over."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from ...common.errors import QuestreeError
from .chunks import ChunkRecord, PassageEncoder, read_record, source_of, texts_of, write_chunk
from .store import PassageStore

_ATTEMPTS = 2


class Told(Protocol):
    """Who wants to know how far the encoding is."""

    def batch(self, more: int) -> None:
        """So many passages more are encoded."""

    def chunk(self, record: ChunkRecord) -> None:
        """A chunk is finished."""


@dataclass
class _Worker:
    device: str
    process: Any
    pipe: Connection
    chunk: int | None = None
    encoded: int = 0
    """Passages of its chunk that were told of."""


def encode_on(
    devices: Sequence[str],
    folder: Path,
    chunks: Sequence[int],
    *,
    load: Callable[[], PassageEncoder],
    identity: str,
    told: Told,
) -> None:
    """Encode chunks on devices, one process each; whoever is free takes the next.

    When a process dies, another takes its place and does its chunk again, once. A script that calls this needs the
    guard ``if __name__ == "__main__"``, as with all of multiprocessing.

    Raises:
        QuestreeError: a chunk's process died twice.
        Exception: what a process raised.
    """
    waiting, died = list(reversed(chunks)), dict.fromkeys(chunks, 0)
    workers: list[_Worker] = []
    try:
        for device in devices[: len(chunks)]:
            workers.append(_started(device, _cores(devices), folder, load, identity))
            _give(workers[-1], waiting.pop())
        while busy := [worker for worker in workers if worker.chunk is not None]:
            ready = wait([worker.pipe for worker in busy])  # the end of a process closes its pipe
            for worker in [worker for worker in busy if worker.pipe in ready]:
                if _heard(worker, folder, told):
                    if worker.chunk is None and waiting:
                        _give(worker, waiting.pop())
                    continue
                again = _given_up(worker, died, told)
                workers.remove(worker)
                workers.append(_started(worker.device, _cores(devices), folder, load, identity))
                _give(workers[-1], again)
    finally:
        for worker in workers:
            worker.pipe.close()
            worker.process.terminate()
            worker.process.join()


def _cores(devices: Sequence[str]) -> int:
    """Threads for each process."""
    return max(1, (os.cpu_count() or 1) // len(devices))


def _started(device: str, threads: int, folder: Path, load: Callable[[], PassageEncoder], identity: str) -> _Worker:
    context = get_context("spawn")  # a forked process cannot use a GPU that this one has touched
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(device, threads, folder, load, identity, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(device, process, ours)


def _give(worker: _Worker, chunk: int) -> None:
    worker.chunk, worker.encoded = chunk, 0
    with suppress(OSError):  # it has died; its closed pipe tells so in a moment
        worker.pipe.send(chunk)


def _heard(worker: _Worker, folder: Path, told: Told) -> bool:
    """What a process has to say; False when it is no more."""
    try:
        said = worker.pipe.recv()
    except (EOFError, OSError):
        return False
    if isinstance(said, Exception):
        raise said
    if said is not None:
        worker.encoded += said
        told.batch(said)
    elif worker.chunk is not None:
        told.chunk(read_record(folder, worker.chunk))
        worker.chunk = None
    return True


def _given_up(worker: _Worker, died: dict[int, int], told: Told) -> int:
    """The chunk that is to be done again.

    Raises:
        QuestreeError: it was done again already.
    """
    assert worker.chunk is not None
    worker.process.join()
    died[worker.chunk] += 1
    if died[worker.chunk] >= _ATTEMPTS:
        raise QuestreeError(
            f"The process that encodes on {worker.device} died twice at chunk {worker.chunk} of the passages (exit "
            f"code {worker.process.exitcode}; -9: killed, often for lack of memory). Free some memory, or name other "
            "devices (--device)."
        )
    told.batch(-worker.encoded)
    return worker.chunk


def _work(
    device: str, threads: int, folder: Path, load: Callable[[], PassageEncoder], identity: str, pipe: Connection
) -> None:
    """Encode the chunks that come through the pipe, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told to stop, and stops us
    os.environ["CUDA_VISIBLE_DEVICES"] = _visible(device)
    if device == "cpu":
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read when torch is imported, by the encoder
    try:
        encoder, passages = load(), PassageStore(folder.parent)
        while True:
            chunk = pipe.recv()
            texts = texts_of(passages, chunk)
            source = source_of(texts, identity)
            write_chunk(folder, chunk, texts, encoder=encoder, made_from=source, progress=pipe.send)
            pipe.send(None)
    except EOFError:
        return
    except Exception as problem:
        with suppress(OSError):
            pipe.send(_plain(problem))


def _visible(device: str) -> str:
    """What ``CUDA_VISIBLE_DEVICES`` is for a process that is to see only this one."""
    if device == "cpu":
        return ""
    number = int(device.removeprefix("cuda:"))
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",")[number] if given else str(number)


def _plain(problem: Exception) -> Exception:
    """The problem itself where it is one of ours or the system's, and a plain one where it might not be picklable."""
    if isinstance(problem, QuestreeError) or type(problem) is OSError:
        return problem
    return RuntimeError(f"{type(problem).__name__}: {problem}")
