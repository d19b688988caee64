"""Serving from the command line, and naming retrievers in every command."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from questree import load_task, program
from questree.cli.serve import named_programs, service_of
from questree.experiment import Experiment
from questree.parts import Parts
from questree.retrieval import KINDS
from questree.service import ServiceLimits
from questree.settings import run_settings

TOKEN = "a-token-that-is-long-enough"
PLUTO = "Who was the discoverer of Pluto?"


@contextmanager
def served(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that serves until it is stopped, and the first line it says."""
    command = [sys.executable, "-c", "from questree.cli import main; main()", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


def test_an_index_is_served_asked_and_stopped(questree, index, workplace, monkeypatch):
    (workplace / "token").write_text(TOKEN)
    with served("serve-retriever", index, "--port", "0", "--token-file", "token") as (process, said):
        address = said.split(" at ")[1].split(";")[0]
        assert f"--retriever {address}" in said
        assert questree("ask", "Why?", "--retriever", address).code == 2  # no token
        health = httpx.get(f"{address}/health", headers={"Authorization": f"Bearer {TOKEN}"}).json()
        assert health["fingerprint"] in said
        monkeypatch.setenv("QUESTREE_TOKEN", TOKEN)
        words = ("ask", PLUTO, "--format", "text", "--retriever")
        over_http = questree(*words, address).done()
        assert over_http.out == questree(*words, index).out
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.parametrize("words", ["serve direct", "serve-retriever absent", "mcp direct --http", "simulate serve"])
def test_an_address_that_is_taken_is_told_before_anything_is_loaded(questree, monkeypatch, words):
    for load in ("retrieval.open_retriever", "parts.Parts.lm", "programs.build"):
        monkeypatch.setattr(f"questree.{load}", None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = questree(f"{words} --port {port}").refused()
    assert f"127.0.0.1:{port} cannot be listened at (Address already in use). Choose another --port" in refused


def test_programs_are_served_and_their_answers_kept(workplace):
    with served("serve", "direct", "again=direct", "--port", "0", "--questions", "kept") as (process, said):
        assert "(the LM is simulated)" in said
        address = said.split(" at ")[1].split(" ")[0]
        asked = {"question": PLUTO, "program": "again"}
        reply = httpx.post(f"{address}/ask", json=asked, timeout=60).json()
        assert reply["state"] == "answered", reply
        page = httpx.get(f"{address}/questions/{reply['id']}").text
        assert reply["answer"] in page
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert list((workplace / "kept").iterdir())


def test_a_program_is_served_with_a_setting(tmp_path):
    service = service_of(
        Experiment(run_settings()), ["oner:abstain=unsupported"], tmp_path / "questions", ServiceLimits()
    )
    assert service.programs["oner"].settings.abstain == "unsupported"


def test_the_deadline_is_that_of_each_question(tmp_path):
    experiment = Experiment(run_settings(deadline=3600))
    service = service_of(experiment, ["direct"], tmp_path / "questions", ServiceLimits(max_running=2))
    assert service.limits == ServiceLimits(max_running=2, seconds=3600)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("models:/best/3", "best"),
        ("models:/best@champion", "best"),
        ("runs/lr=2/program/", "program"),
        ("mine=runs/lr=2", "mine"),
        ("evidence-chain:abstain=unsupported", "evidence-chain"),
        ("strict=evidence-chain:abstain=unsupported", "strict"),
    ],
)
def test_a_program_has_a_name_that_clients_can_say(given, name):
    assert list(named_programs([given])) == [name]


def test_several_indexes_are_named_with_a_plus(questree, index, workplace):
    questree("index", load_task("mini").corpus, "--out", "again", "--kind", "bm25").done()
    questree("ask", PLUTO, "--retriever", "index+again").done()
    assert program("searchain", retriever="index+again").retriever.name == "fusion(bm25+bm25)"


def test_a_retriever_is_opened_once_however_it_is_spelled(index, workplace):
    spelled = [Parts(run_settings(retriever=name)).retriever for name in ("index", workplace / "index", "./index/")]
    assert len(set(map(id, spelled))) == 1


def test_every_kind_is_listed(questree):
    listed = questree("list", "retrievers").out
    for name, kind in KINDS.items():
        assert f"--kind {name}" in listed
        assert " ".join(kind.description.split()[:3]) in listed
    assert "serve-retriever" in listed
    assert "reciprocal rank" in listed
    assert "…" not in listed
