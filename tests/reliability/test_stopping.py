"""Ctrl-C, really pressed: once ends cleanly and says how to go on, twice ends at once."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from reliability.faulty_server import Schedule, at_fault

from questree.cli.evaluate import evaluate
from questree.evaluation.stored_runs import read_records
from questree.settings import run_settings

COMMAND = "import sys; from questree.cli import main; sys.argv = ['questree', *sys.argv[1:]]; main()"
REPLY = "[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"


class Held:
    """An LM's server that answers the first two requests and holds the others until it is let go."""

    def __init__(self) -> None:
        self.requests = 0
        self.two_held, self.let_go, self._lock = threading.Event(), threading.Event(), threading.Lock()

    def __call__(self, path: str, body: bytes) -> tuple[int, Any]:
        with self._lock:
            self.requests += 1
            number = self.requests
        if number == 4:
            self.two_held.set()
        if number > 2:
            self.let_go.wait(60)
        message = {"role": "assistant", "content": REPLY}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return 200, {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


@pytest.fixture
def held() -> Iterator[tuple[Held, str]]:
    server = Held()
    with at_fault(server, Schedule([])) as address:
        yield server, f"{address}/v1"
        server.let_go.set()


def started(address: str, folder: Path) -> subprocess.Popen[str]:
    words = ["evaluate", "direct", "--task", "mini", "--limit", "8", "--concurrency", "2", "--tracking-uri", "none"]
    words += ["--lm", "openai/m", "--api-base", address, "--out", "run"]
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        env={**os.environ, "QUESTREE_CACHE": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def press(run: subprocess.Popen[str], how: int = signal.SIGINT) -> str:
    """Press Ctrl-C, or end it otherwise; return what is said of it."""
    run.send_signal(how)
    assert run.stderr is not None
    return next(line for line in run.stderr if "Stopping" in line)


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_once_finishes_what_is_on_its_way_and_says_how_to_go_on(how, held, tmp_path, monkeypatch):
    server, address = held
    run = started(address, tmp_path)
    assert server.two_held.wait(60)
    assert "waiting for 2 questions" in press(run, how)
    server.let_go.set()
    _, said = run.communicate(timeout=60)
    assert run.returncode == (130 if how == signal.SIGINT else run.returncode) > 0
    stopped = [line for line in said.splitlines() if line.startswith("stopped:")]
    assert len(stopped) == 1
    assert "4 more questions were finished and are kept in run: run the same again to go on" in stopped[0]
    assert (server.requests, len(read_records(tmp_path / "run"))) == (4, 4)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    settings = run_settings(limit=8, lm="openai/m", api_base=address, out="run", tracking_uri="none")
    evaluate(settings, "direct")
    assert (server.requests, len(read_records(tmp_path / "run"))) == (8, 8)


@pytest.mark.slow
def test_twice_ends_at_once_and_keeps_what_was_finished(held, tmp_path):
    server, address = held
    run = started(address, tmp_path)
    assert server.two_held.wait(60)
    press(run)
    for _ in range(50):  # once more, but not in the same instant
        run.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            run.wait(0.2)
            break
    _, said = run.communicate(timeout=10)
    assert not server.let_go.is_set()
    assert run.returncode == 130
    assert "stopped: 2 more questions were finished" in said
    assert len(read_records(tmp_path / "run")) == 2
