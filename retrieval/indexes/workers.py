"""Worker processes that encode on several devices, one for each; a worker that dies is replaced."""

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
from .contents import PassageStore

_ATTEMPTS = 2


class WorkReport(Protocol):
    """The count of what is encoded."""

    def add(self, more: int) -> None:
        """Count so many passages more, or fewer."""

    def finish(self, record: ChunkRecord) -> None:
        """Note that a chunk is finished."""


@dataclass
class _Worker:
    device: str
    process: Any
    pipe: Connection
    chunk: int | None = None
    encoded: int = 0
    """Passages of its chunk that it reported."""


def encode_on(
    devices: Sequence[str],
    folder: Path,
    chunks: Sequence[int],
    *,
    load: Callable[[], PassageEncoder],
    identity: str,
    report: WorkReport,
) -> None:
    """Encode chunks in one process for each device; a free process takes the next chunk.

    If a process dies, a new one does its chunk again, once. A script that calls this needs the guard
    ``if __name__ == "__main__"``, as with all of multiprocessing.

    Raises:
        QuestreeError: if two processes died at one chunk.
        Exception: that a process raised.
    """
    waiting, died = list(reversed(chunks)), dict.fromkeys(chunks, 0)
    workers: list[_Worker] = []
    try:
        for device in devices[: len(chunks)]:
            workers.append(_start(device, _cores(devices), folder, load, identity))
            _give(workers[-1], waiting.pop())
        while busy := [worker for worker in workers if worker.chunk is not None]:
            ready = wait([worker.pipe for worker in busy])  # the end of a process closes its pipe
            for worker in [worker for worker in busy if worker.pipe in ready]:
                if _hear(worker, folder, report):
                    if worker.chunk is None and waiting:
                        _give(worker, waiting.pop())
                    continue
                again = _give_up(worker, died, report)
                workers.remove(worker)
                workers.append(_start(worker.device, _cores(devices), folder, load, identity))
                _give(workers[-1], again)
    finally:
        for worker in workers:
            worker.pipe.close()
            worker.process.terminate()
            worker.process.join()


def _cores(devices: Sequence[str]) -> int:
    """Return the number of threads for each process."""
    return max(1, (os.cpu_count() or 1) // len(devices))


def _start(device: str, threads: int, folder: Path, load: Callable[[], PassageEncoder], identity: str) -> _Worker:
    context = get_context("spawn")  # a forked process cannot use a GPU that this one has touched
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(device, threads, folder, load, identity, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(device, process, ours)


def _give(worker: _Worker, chunk: int) -> None:
    worker.chunk, worker.encoded = chunk, 0
    with suppress(OSError):  # it has died; its closed pipe shows that in a moment
        worker.pipe.send(chunk)


def _hear(worker: _Worker, folder: Path, report: WorkReport) -> bool:
    """Take a message of a process; return False if the process has died."""
    try:
        message = worker.pipe.recv()
    except (EOFError, OSError):
        return False
    if isinstance(message, Exception):
        raise message
    if message is not None:
        worker.encoded += message
        report.add(message)
    elif worker.chunk is not None:
        report.finish(read_record(folder, worker.chunk))
        worker.chunk = None
    return True


def _give_up(worker: _Worker, died: dict[int, int], report: WorkReport) -> int:
    """Return the chunk of a dead process, which is to be done again.

    Raises:
        QuestreeError: if it was done again already.
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
    report.add(-worker.encoded)
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
    """Return ``CUDA_VISIBLE_DEVICES`` for a process that may see only this device."""
    if device == "cpu":
        return ""
    number = int(device.removeprefix("cuda:"))
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",")[number] if given else str(number)


def _plain(problem: Exception) -> Exception:
    """Return the problem if it is ours or the system's, else a plain one, as others may not be picklable."""
    if isinstance(problem, QuestreeError) or type(problem) is OSError:
        return problem
    return RuntimeError(f"{type(problem).__name__}: {problem}")
