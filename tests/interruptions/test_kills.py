"""kill -9 at random points: what was finished stays, what was answered is not asked again, the end is the same.

`make test` kills a writer of runs (evaluation/test_run_file.py) and stops a command (reliability/test_stopping.py).
"""

import os
import subprocess
import sys

import pytest
from reliability.interruptions import COMMANDS, KEEPS_NO_ACCOUNT, PAYING, interruption_report, prepare, words
from reliability.left_behind import result
from reliability.small_world import WatchedEngine, mind

from questree.simulate.server import running_lm

COMMAND = "import sys; from questree.cli import main; sys.argv = ['questree', *sys.argv[1:]]; main()"


def check(kind, kills, stops, seed, folder):
    found = interruption_report(kind, kills, stops, seed, folder)
    assert found.wrong == []
    assert (found.tried["kills"], found.tried["stops"]) == (kills, stops)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMMANDS)
def test_interrupted_many_times_anything_goes_on(kind, tmp_path):
    if "ray" in kind:
        pytest.importorskip("ray", reason="needs questree[cluster]")
    check(kind, 0 if kind == KEEPS_NO_ACCOUNT else 10, 5 if kind in PAYING else 0, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bootstrap-random-search", "mipro", "gepa"])
def test_an_optimizer_asks_in_another_process_what_it_asked_before(kind, tmp_path):
    """Whatever its threads and its hash seed, and also where replies must be asked for again, as this mind's must.

    A question fails if no attempt gives a reply that can be read; another process would ask that one again.
    """
    engine = WatchedEngine(mind(malformed=0.05, seed=2))
    prepare(kind, tmp_path)
    asked, results = [], []
    with running_lm(engine) as address:
        for seed in ("1", "2"):
            folder = tmp_path / seed
            folder.mkdir()
            environment = {**os.environ, "QUESTREE_CACHE": str(tmp_path / "cache"), "PYTHONHASHSEED": seed}
            subprocess.run(
                [sys.executable, "-c", COMMAND, *words(kind, address)],
                cwd=folder, env=environment, check=True, capture_output=True,
            )  # fmt: skip
            asked.append(engine.requests)
            results.append(result(folder))
    assert asked[1] == asked[0] > 0
    assert results[0] == results[1]
