"""The frame of every benchmark: options, a header with command and machine, processes, the bundled world."""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

QUESTION = "Which river reaches the sea in the city where the author of Ulysses was born?"


def options(text: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the benchmark's own docstring."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def begin(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the command line, make the folder of ``--out`` if there is one, and print the command and the machine."""
    given = parser.parse_args()
    if out := getattr(given, "out", None):
        out.mkdir(parents=True, exist_ok=True)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")] or [platform.processor()]
    machine = f"{os.cpu_count()} cores, {names[0]}, load {os.getloadavg()[0]:.1f}"
    command = " ".join(["python", *sys.argv])
    print(f"`{command}`, {machine}, Python {platform.python_version()}\n", flush=True)
    return given


class Took(NamedTuple):
    """What work took: seconds by the clock, seconds of the processor, and at most so many MB of memory."""

    clock: float
    processor: float
    memory: float = 0.0


def run_command(words: Sequence[str]) -> tuple[Took, str]:
    """Run a command to its end; return what it took and what it printed.

    Raises:
        SystemExit: if it fails.
    """
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    return Took(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), printed


def run_questree(*words: object) -> Took:
    """Run a command of ours to its end; return what it took."""
    return run_command([str(Path(sys.executable).with_name("questree")), *map(str, words)])[0]


def in_own_process(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function of a module gives in a fresh process, whose memory and imports are its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(function, given)


def took(work: Callable[[], Any]) -> tuple[Any, Took]:
    """Return what a function gives, and what it took."""
    began, processor = time.perf_counter(), time.process_time()
    found = work()
    return found, Took(time.perf_counter() - began, time.process_time() - processor)


def memory(name: str = "VmRSS") -> float:
    """Return the MB that this process has in RAM; with ``VmHWM`` the most that it had (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def bundled_questions(count: int | None = None) -> list[Any]:
    """Return the questions of the bundled task, or so many: then again and again under other ids."""
    from questree.data import load_task

    known = [question for split in load_task("mini").questions.values() for question in split]
    if count is None:
        return known
    return [known[number % len(known)].model_copy(update={"id": f"q{number}"}) for number in range(count)]


def bundled_retriever() -> Any:
    """Return BM25 over the bundled passages."""
    from questree.data import MINI_CORPUS
    from questree.retrieval import BM25Retriever, read_corpus

    return BM25Retriever.from_passages(read_corpus(MINI_CORPUS))


def simulated_engine() -> Any:
    """Return an engine of the simulated LM that knows the bundled questions."""
    from questree.simulate import Mind, SimulatedEngine, Traits, World

    return SimulatedEngine(Mind(World(bundled_questions()), Traits()))


@contextmanager
def served(serve: Callable[..., None], *given: Any) -> Iterator[str]:
    """Let a function serve in a process of its own, and send its address into the pipe that it is given; gives that."""
    ours, theirs = get_context("spawn").Pipe()
    server = get_context("spawn").Process(target=serve, args=(theirs, *given), daemon=True)
    server.start()
    try:
        yield ours.recv()
    finally:
        server.terminate()


def serve_lm(told: Any) -> None:
    """Serve the simulated LM, and tell its address."""
    from questree.simulate.server import running_lm

    with running_lm(simulated_engine()) as address:
        told.send(address)
        time.sleep(10**9)
