"""kill -9 at random points: what was finished stays, what was answered is not asked again, the end is the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from reliability.interruptions import KINDS, interruption_report, words
from reliability.killing import Counting
from reliability.left_behind import result

from questree.data import MINI_CORPUS, load_task
from questree.retrieval import build_index
from questree.simulate import Mind, Traits, World
from questree.simulate.server import running

COMMAND = "import sys; from questree.cli import main; sys.argv = ['questree', *sys.argv[1:]]; main()"


def check(kind, kills, seed, folder):
    found = interruption_report(kind, kills, seed, folder)
    assert (found.kills, found.lost, found.repeated, found.differing) == (kills, [], [], [])
    return found


def test_a_killed_evaluation_goes_on(tmp_path):
    assert check("evaluate", 2, 5, tmp_path).kept > 0


def test_a_killed_indexing_goes_on(tmp_path):
    assert check("index", 1, 4, tmp_path).kept > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_killed_twenty_times_anything_goes_on(kind, tmp_path):
    if "ray" in kind:
        pytest.importorskip("ray", reason="needs questree[cluster]")
    assert check(kind, 20, 0, tmp_path).kept > 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bootstrap-random-search", "mipro", "gepa"])
def test_an_optimizer_asks_in_another_process_what_it_asked_before(kind, tmp_path):
    """Whatever its threads and its hash seed, and also where replies must be asked for again."""
    questions = [question for split in load_task("mini").questions.values() for question in split]
    engine = Counting(Mind(World(questions), Traits(malformed=0.05)))
    build_index(MINI_CORPUS, tmp_path / "bm25", kind="bm25")
    asked, results = [], []
    with running(engine) as address:
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
