from __future__ import annotations

import json
import logging
from functools import partial

import pytest
from huggingface_hub import HfApi

import questree
from questree.common.errors import QuestreeError
from questree.optimize import hub as hub_module
from questree.optimize import load, save
from questree.optimize.card import push
from questree.optimize.hub import parse
from questree.programs import build

from .fake_hub import running


@pytest.fixture
def hub(monkeypatch):
    """The stand-in, as the hub that the client knows, with a token."""
    with running() as served:
        monkeypatch.setattr("huggingface_hub.HfApi", partial(HfApi, endpoint=served.address))
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        yield served


@pytest.fixture
def program(mini, bootstrapped, tmp_path):
    """The folder of a compiled program."""
    scores = {"after": {"mean": 0.5, "low": 0.25, "high": 0.75, "n": 40}}
    return save(bootstrapped, tmp_path / "program", scores=scores, task="mi|ni", metrics=["cover-em"])


def test_what_is_pushed_is_loaded_by_its_commit(hub, program, mini, caplog):
    place = push(program, "hf://me/chain")
    assert place == f"hf://me/chain@{next(iter(hub.commits))}"
    loaded = questree.load(place, retriever=mini.index)
    here = load(program, retriever=mini.index)
    question = mini.dev[0].inputs()
    assert loaded(**question).final_content == here(**question).final_content
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_revision_that_moved_is_told_and_the_named_one_stays(hub, program, mini, caplog, tmp_path):
    first = push(program, "hf://me/chain")
    other = save(build("searchain", {"max_rounds": 2}, retriever=mini.index), tmp_path / "other")
    second = push(other, "hf://me/chain")
    assert load(first, retriever=mini.index).settings.max_rounds == 5
    assert load("hf://me/chain", retriever=mini.index).settings.max_rounds == 2
    assert f"hf://me/chain is {second} today" in caplog.text


def test_the_card_says_what_it_is_and_how_it_scored(hub, program, tmp_path):
    (tmp_path / "study.capsule").write_bytes(b"capsule")
    push(program, "hf://me/chain", license="cc-by-4.0", capsule=tmp_path / "study.capsule")
    files = next(iter(hub.commits.values()))
    card = files["README.md"].decode()
    assert files["study.capsule"] == b"capsule"
    assert card.startswith("---\nlibrary_name: questree\nlicense: cc-by-4.0\n")
    for line in (
        "| cover-em | 0.500 [0.250, 0.750], n=40 |",
        "| task | `mi/ni` |",
        "| retriever | `words` `words-1` |",
        "(**simulated**: its numbers say nothing)",
        'questree.load("hf://me/chain", retriever=',
        "whose licence they keep: cc-by-4.0",
        "questree replay study.capsule",
    ):
        assert line in card
    assert "hf_secret" not in card


def test_the_card_tells_the_recipe_of_the_index(program, hub, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"id": str(n), "text": f"word {n}"}) + "\n" for n in range(3)))
    index = questree.retrieval.build_index(corpus, tmp_path / "index", kind="bm25")
    push(program, "hf://me/chain", index=index)
    card = next(iter(hub.commits.values()))["README.md"].decode()
    assert "| index | `bm25 " in card
    assert "`corpus.jsonl`, 3 passages, SHA-256 `" in card


def test_an_index_that_it_was_not_compiled_over_is_refused(program, hub, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "1", "text": "word"}\n')
    index = questree.retrieval.build_index(corpus, tmp_path / "index", kind="bm25")
    over = build("searchain", {}, retriever=questree.retrieval.load_index(index))
    compiled = save(over, tmp_path / "over")
    corpus.write_text('{"id": "1", "text": "other"}\n')
    other = questree.retrieval.build_index(corpus, tmp_path / "other", kind="bm25")
    with pytest.raises(QuestreeError, match="was compiled over"):
        push(compiled, "hf://me/chain", index=other)
    assert hub.commits == {}


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (401, "", "wants a token"),
        (403, "GatedRepo", "only who asked its owner"),
        (404, "RepoNotFound", "no such repository, or it is private and no token is set"),
        (404, "RevisionNotFound", "no such revision"),
    ],
)
def test_a_hub_that_refuses_is_told_in_one_line(hub, program, status, code, says):
    hub.refuse = (status, code)
    for act in (lambda: load("hf://me/chain@v1"), lambda: push(program, "hf://me/chain")):
        with pytest.raises(QuestreeError, match=says) as told:
            act()
        assert "\n" not in str(told.value)
        assert "hf_secret" not in str(told.value)


def test_files_beside_the_program_are_not_fetched_and_changed_ones_are_refused(hub, program, mini, monkeypatch):
    push(program, "hf://me/chain")
    hub.commit({"evil.py": b"raise SystemExit", "weights.bin": b"\0"})
    fetched: list[str] = []
    whole = hub_module.fetch

    def fetch(address, target):
        place = whole(address, target)
        fetched.extend(path.name for path in target.rglob("*") if ".cache" not in path.parts and path.is_file())
        return place

    monkeypatch.setattr(hub_module, "fetch", fetch)
    load("hf://me/chain", retriever=mini.index)
    assert sorted(fetched) == ["program.json", "questree.json"]
    hub.commit({"program.json": b"{}"})
    with pytest.raises(QuestreeError, match="its checksum differs"):
        load("hf://me/chain", retriever=mini.index)


def test_a_repository_of_gigabytes_is_refused_before_it_is_fetched(hub, program, monkeypatch):
    push(program, "hf://me/chain")
    monkeypatch.setattr(hub_module, "LARGEST", 100)
    with pytest.raises(QuestreeError, match="more than 100 bytes"):
        load("hf://me/chain")


def test_without_a_network_it_says_so(monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", partial(HfApi, endpoint="http://127.0.0.1:9"))
    with pytest.raises(QuestreeError, match=r"hf://me/chain@v1: .*(refused|connect)"):
        load("hf://me/chain@v1")


@pytest.mark.parametrize("address", ["hf://me", "hf://me/a/b", "hf://me/a@", "hf://../etc", "hf://me/a b"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(QuestreeError, match="write hf://user/name"):
        parse(address)
