"""The code of the guide to a service of one's own, with many clients; and a command where there is no home."""

import asyncio
import json
import os
import subprocess
import sys

import dspy
import httpx
import pytest
from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import every_question
from test_guides import DOCS, blocks

from questree.data import MINI_CORPUS
from questree.programs import SearChain
from questree.retrieval import build_index
from questree.retrieval.serving.listener import running
from questree.simulate import Traits, simulated_lm

CODE = [block.text for block in blocks(DOCS / "your-own-service.md") if block.language == "python"]
CLIENTS = 24


@pytest.fixture
def program(_task, _index):
    dspy.configure(lm=simulated_lm(every_question(_task), Traits(malformed=0)))
    yield SearChain(_index)
    dspy.configure(lm=None)


def test_many_clients_read_their_questions_as_streams(program, _task):  # noqa: PT019
    made: dict = {}
    exec(CODE[0], made)
    questions = [one.question for one in _task.examples("train")[:CLIENTS]]
    asked = [questions[number % len(questions)] for number in range(CLIENTS)]
    with running(made["service"](program)) as address:
        told = asyncio.run(_all(address, asked))
    for question, events in zip(asked, told, strict=True):
        kinds = [event["kind"] for event in events]
        assert kinds[-1] == "done"
        assert kinds.index("node_grown") < len(kinds) - 1
        assert events[-1]["prediction"]["tree"]["question"] == question


async def _all(address: str, asked: list[str]) -> list[list[dict]]:
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=httpx.Limits(max_connections=None)) as client:
        return await asyncio.gather(*(_read(client, question) for question in asked))


async def _read(client: httpx.AsyncClient, question: str) -> list[dict]:
    async with client.stream("GET", "/ask", params={"question": question}) as reply:
        return [json.loads(line[6:]) async for line in reply.aiter_lines() if line]


def test_the_guide_s_deadline_ends_a_question(program, _task):  # noqa: PT019
    made: dict = {}
    exec(CODE[1], made)
    question = _task.examples("dev")[0].question
    assert made["answer_within"](program, question, 60).failure is None
    assert made["answer_within"](program, question, 1e-9).failure.cause == "deadline"


def test_a_command_needs_no_home(tmp_path, own_cache):
    (tmp_path / "file").touch()
    nowhere = {"HOME": f"{tmp_path}/file/home", "XDG_CACHE_HOME": f"{tmp_path}/file/cache", "PATH": os.environ["PATH"]}
    nowhere |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    kept = {"QUESTREE_CACHE": str(own_cache), "DSPY_CACHEDIR": f"{own_cache}/dspy", "OMP_NUM_THREADS": "1"}
    index = build_index(MINI_CORPUS, own_cache / "bm25", kind="bm25")
    words = ["evaluate", "searchain", "--limit", "1", "--tracking-uri", "none", "--out", f"{tmp_path}/run", "--json"]
    words += ["--retriever", str(index)]
    code = "from questree.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, env=nowhere | kept, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["n"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"file", "cache", "run"}
