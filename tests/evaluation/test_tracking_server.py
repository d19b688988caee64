"""Tracking to a real MLflow server, in a process of its own on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

import questree
from questree.evaluation.tracking import Tracking
from questree.metrics import metric
from questree.optimize import Examples, load, optimizer
from questree.optimize import compile as compile_program
from questree.programs import SearChain
from questree.programs.states import state_of


@pytest.fixture(scope="module")
def server(tmp_path_factory, tracking_store):
    """The address of an MLflow server over an empty store."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_store(folder)]
    command += ["--artifacts-destination", str(folder / "kept"), "--workers", "1", "--port", port]
    quick = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen(command, env=os.environ | quick, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str) -> None:
    until = time.monotonic() + 240
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(url)


@pytest.fixture(scope="module")
def compiled(server, _task, _index):
    """A compilation that was tracked to the server."""
    from mini_task import _simulated

    # traces are sent by a thread of MLflow's, as they are to a user
    with pytest.MonkeyPatch.context() as own, _simulated(_task, _index) as mini:
        own.delenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", raising=False)
        yield compile_program(
            SearChain(_index),
            Examples(mini.train[:8], mini.dev[:3], task="mini"),
            metric("by-style"),
            optimizer=optimizer("bootstrap-few-shot", max_bootstrapped_demos=1),
            tracking=Tracking(uri=server),
        )


@pytest.fixture
def client(server):
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(server)
    yield mlflow.MlflowClient(server)
    mlflow.set_tracking_uri(before)


def test_a_server_holds_the_run_its_prompts_and_the_program(client, compiled, mini):
    run = client.get_run(compiled.address.removeprefix("runs:/").partition("/")[0])
    assert run.data.metrics["after_score"] == compiled.after.score.mean
    names = {one["name"] for one in json.loads(run.data.tags["mlflow.linkedPrompts"])}
    assert names == {f"searchain.{name}" for name, _ in compiled.program.named_predictors()}
    assert state_of(load(compiled.address, retriever=mini.index)) == state_of(compiled.program)


def test_a_server_holds_the_traces_with_their_scores(client, compiled):
    experiment = client.get_experiment_by_name("questree").experiment_id
    traces = client.search_traces(locations=[experiment])
    assert len(traces) == compiled.before.n + compiled.after.n
    assert all({"by-style", "expected_response"} <= {one.name for one in trace.info.assessments} for trace in traces)
    assert {"RETRIEVER", "CHAT_MODEL"} <= {span.span_type for span in traces[0].data.spans}


def test_a_server_takes_a_task_as_one_data_set(client):
    dataset = questree.mlflow_dataset("mini", "test")
    assert dataset.dataset_id == questree.mlflow_dataset("mini", "test").dataset_id
    assert len(dataset.to_df()) == len(questree.load_task("mini").split("test"))
