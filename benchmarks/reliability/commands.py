"""Commands in processes of their own, which signals end at a point that is drawn, and the LM's server that they ask."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path

from questree.simulate.server import running_lm

from .small_world import WatchedEngine, mind

LATENCY = 0.005  # seconds of a reply
SAID = "said.txt"
PATIENCE = 300  # seconds after which a command hangs
PRELOADED = (
    *("questree.cli", "questree.experiment", "questree.evaluation.attacks"),
    *("torch", "faiss", "transformers.models.bert.modeling_bert"),
    *("questree.retrieval.dense", "questree.retrieval.sentence_encoder"),
)


@dataclass(frozen=True)
class Point:
    """When a command gets signals; a command that ends before that gets none.

    Attributes:
        seconds: after its start.
        request: as the LM's server gets the n-th one from now on.
        signals: that it gets.
    """

    seconds: float | None = None
    request: int = 0
    signals: tuple[int, ...] = (signal.SIGKILL,)


@dataclass
class Commands:
    """Runs commands of questree against an LM's server.

    Attributes:
        engine: of the server; counts what is asked.
        address: of the server.
        context: in which a command is forked.
    """

    engine: WatchedEngine
    address: str
    context: ForkServerContext

    def run(self, words: Sequence[str], folder: Path, point: Point = Point()) -> int:
        """Run a command in a folder, which also holds its cache; return its exit status, -9 where it was killed.

        Raises:
            RuntimeError: if it hangs.
        """
        folder.mkdir(exist_ok=True)
        process = self.context.Process(target=run_command, args=(list(words), folder))

        def interrupt() -> None:
            for one in point.signals:
                with suppress(ProcessLookupError, TypeError):  # it has ended, or has not begun
                    os.kill(process.pid, one)

        self.engine.call_at(point.request, interrupt)
        process.start()
        process.join(point.seconds or PATIENCE)
        self.engine.call_at(0, interrupt)
        if process.is_alive():
            process.kill()
            process.join()
            if point.seconds is None:
                raise RuntimeError(f"questree {' '.join(words)}: hangs: {(folder / SAID).read_text()[-2000:]}")
        assert process.exitcode is not None
        return process.exitcode


@contextmanager
def commands(malformed: float = 0.0) -> Iterator[Commands]:
    """Serve a simulated LM, and let a process fork one for each command: what they import is imported once."""
    engine = WatchedEngine(mind(malformed=malformed, latency=LATENCY))
    with running_lm(engine) as address:
        context = get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        yield Commands(engine, address, context)


def run_command(words: list[str], folder: Path) -> None:
    """Run a command, in its process, as the shell does; what it says goes into `SAID`."""
    os.chdir(folder)
    os.environ |= {"QUESTREE_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    with Path(SAID).open("ab", buffering=0) as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.argv = ["questree", *words]
    from questree.cli import main

    main()
