"""Two processes and one folder: the second is refused by name, and goes on once the first is gone, however it went."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from questree.common.errors import QuestreeError
from questree.evaluation.attacks import Attack, attack
from questree.evaluation.comparison.comparison import compare
from questree.evaluation.run import evaluate
from questree.metrics import metric
from questree.retrieval import build_index

HOLD = """
import sys, filelock
lock = filelock.FileLock(sys.argv[1], timeout=0)
with lock:
    print("held", flush=True)
    input()
"""
right = metric("em")


@pytest.fixture
def other() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Another process that holds a lock until it is killed."""
    processes = []

    def holding(lock: Path) -> subprocess.Popen[str]:
        lock.parent.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield holding
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("what", ["evaluate", "compile", "compare", "attack", "index"])
def test_the_second_is_refused_and_goes_on_when_the_first_was_killed(mini, tmp_path, other, what):
    out = tmp_path / "out"
    commands = {
        "evaluate": lambda: evaluate(mini.program(), mini.dev[:2], right, out=out),
        "compile": lambda: mini.compiled("labeled-few-shot", out=out),
        "compare": lambda: compare({"one": mini.program()}, mini.dev[:2], [right], out=out),
        "attack": lambda: attack(
            {"one": mini.program()},
            mini.dev[:2],
            right,
            [Attack("poison", 1, 0)],
            retriever=mini.index,
            out=out,
            pool=mini.dev,
        ),
        "index": lambda: build_index(mini.index.passages[:4], out, kind="bm25"),
    }
    first = other(out / "lock")
    with pytest.raises(QuestreeError, match=f"Another process is .*{out}"):
        commands[what]()
    assert {path.name for path in out.rglob("*")} <= {"lock"}
    first.kill()
    first.wait()
    commands[what]()
    assert len(list(out.rglob("*"))) > 1
