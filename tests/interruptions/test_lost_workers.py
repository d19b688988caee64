"""Workers on a Ray cluster: what they answer and encode is what one process does, also if some of them are killed."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
from functools import partial

import pytest
from chunk_encoder import LetterEncoder, load, load_dying
from ray_cluster import cluster_of_two, cluster_of_two_nodes, kill_a_worker
from reliability.interruptions import IN_FLIGHT
from reliability.left_behind import result
from reliability.small_world import WatchedEngine, mind

from questree.cli.evaluate import evaluate
from questree.data import MINI_CORPUS
from questree.retrieval import Passage, build_index
from questree.retrieval.indexes import chunks
from questree.retrieval.indexes.cluster import connected
from questree.retrieval.indexes.contents import PassageStore, write_passages
from questree.retrieval.indexes.encoding import encode_corpus
from questree.retrieval.indexes.index_kind import Order
from questree.settings import run_settings
from questree.simulate.server import running

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cluster(cache):
    with cluster_of_two(cache) as ray:
        yield ray


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(MINI_CORPUS, tmp_path_factory.mktemp("index") / "bm25", kind="bm25")


@pytest.fixture(scope="module")
def server():
    engine = WatchedEngine(mind(latency=0.005))
    with running(engine) as address:
        yield engine, address


def settings(index, **more):
    return run_settings(retriever=index, tracking_uri="none", split="train,dev,test", **more)


def evaluated(index, out, **more):
    evaluate(settings(index, out=out, **more), "searchain")
    return result(out.parent)


def task_of(count, folder):
    """A task of so many questions: those of the mini set, again and again under other ids."""
    folder.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in (MINI_CORPUS.parent / "questions.jsonl").read_text().splitlines()]
    chosen = [rows[number % len(rows)] | {"id": f"q{number}"} for number in range(count)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chosen))
    return folder / "questions.jsonl"


# The first test: a cluster of two nodes cannot be made while this process has joined `cluster`.
@pytest.mark.slow
def test_a_lost_node_loses_nothing(server, index, tmp_path, workplace, cache):
    undisturbed = whole(server, index, tmp_path)
    with cluster_of_two_nodes(cache) as cluster:
        for seed in range(20):
            node = cluster.more()
            lose = partial(cluster.remove_node, node, allow_graceful=False)
            assert interrupted(seed, lose, server, index, tmp_path, cache) == undisturbed


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_two_workers_answer_as_one_process_does(count, cluster, index, tmp_path, workplace):
    more = {"task": str(task_of(count, tmp_path / "task")), "concurrency": 4}
    alone = evaluated(index, tmp_path / "alone" / "run", **more)
    shared = evaluated(index, tmp_path / "shared" / "run", **more, on="ray", workers=2)
    assert len(alone["runs.db"]["records"]) == count
    assert shared == alone


def whole(server, index, folder):
    """What a run gives that nothing interrupts, in one process."""
    return evaluated(index, folder / "whole" / "run", **served(server, folder))


def served(server, folder):
    return {"task": str(task_of(24, folder / "task")), "lm": "openai/simulated", "api_base": server[1]}


def interrupted(seed, lose, server, index, folder, cache):
    """What a run on two workers gives, one of which is lost as some request comes in."""
    engine, lost = server[0], list[object]()
    shutil.rmtree(cache, ignore_errors=True)
    engine.asked.clear()
    engine.call_at(random.Random(seed).randint(1, 60), lambda: lost.append(lose()))
    found = evaluated(index, folder / str(seed) / "run", **served(server, folder), on="ray", workers=2)
    assert len(lost) == 1
    again = engine.requests - len(engine.asked)
    assert again <= IN_FLIGHT, "only requests that were on their way may be sent again"
    return found


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_lost_worker_loses_nothing(times, cluster, server, index, tmp_path, workplace, cache):
    undisturbed = whole(server, index, tmp_path)
    for seed in range(times):
        assert interrupted(seed, kill_a_worker, server, index, tmp_path, cache) == undisturbed


def chunks_of(folder, count, load, cluster=None):
    folder.mkdir()
    write_passages(folder, (Passage(id=str(n), text="ab" * n + f" {n}") for n in range(count)))
    encode_corpus(Order(folder, PassageStore(folder), cluster=cluster), "chunks", LetterEncoder(), "letters", load)
    return {path.name: path.read_bytes() for path in (folder / "chunks").iterdir()}


def test_two_workers_encode_as_one_process_does_also_if_one_is_lost(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 8)
    (tmp_path / "marks").mkdir()
    mortal = partial(load_dying, 8, str(tmp_path / "marks"), " 20", 1)
    with connected("ray", workers=2) as found:
        shared = chunks_of(tmp_path / "shared", 43, mortal, found)
    assert len(list((tmp_path / "marks").iterdir())) == 1
    assert shared == chunks_of(tmp_path / "alone", 43, partial(load, 8))


ANOTHER_RAY = "import ray; ray.__version__ = '2.0.0'; "


def by_address(address, index, folder, before=""):
    """How the command ends, in a process of its own, with the workers of the cluster at this address."""
    words = ["evaluate", "direct", "--limit", "4", "--retriever", str(index), "--tracking-uri", "none"]
    words += ["--out", "run", "--on", address, "--workers", "1"]
    code = f"import sys; {before}from questree.cli import main; sys.argv = ['questree', *{words}]; main()"
    environment = {**os.environ, "RAY_AUTH_MODE": "token"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


@pytest.mark.slow
def test_a_cluster_by_its_address(cluster, index, tmp_path, workplace):
    from ray.util.client.server.server import serve

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = serve("127.0.0.1", port)
    try:
        ran = by_address(f"ray://127.0.0.1:{port}", index, tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert len(result(tmp_path)["runs.db"]["records"]) == 4
        refused = by_address(f"ray://127.0.0.1:{port}", index, tmp_path, ANOTHER_RAY)
        assert refused.returncode == 2
        assert "cannot be used: Version mismatch" in refused.stderr
    finally:
        server.stop(0)
