import hashlib
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import create_autospec

import httpx
import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

import questree
from questree.common.errors import QuestreeError
from questree.optimize import hub as hub_module
from questree.optimize import load, save
from questree.optimize.card import push
from questree.optimize.hub import parse
from questree.programs import build


class Hub:
    """What the hub's client does with one repository: a commit for each push, the oldest first."""

    def __init__(self):
        self.commits: dict[str, dict[str, bytes]] = {}

    def model_info(self, repository, *, revision=None, files_metadata=False):
        sha = revision or list(self.commits)[-1]
        files = [SimpleNamespace(rfilename=name, size=len(content)) for name, content in self.commits[sha].items()]
        return SimpleNamespace(sha=sha, siblings=files)

    def hf_hub_download(self, repository, name, *, revision, local_dir):
        Path(local_dir, name).write_bytes(self.commits[revision][name])

    def create_commit(self, repository, operations, *, commit_message):
        def content(held):
            return held if isinstance(held, bytes) else Path(held).read_bytes()

        return self.commit({one.path_in_repo: content(one.path_or_fileobj) for one in operations})

    def commit(self, files):
        whole = (list(self.commits.values())[-1] if self.commits else {}) | files
        oid = hashlib.sha1(repr(sorted(whole.items())).encode()).hexdigest()
        self.commits[oid] = whole
        return SimpleNamespace(oid=oid)


@pytest.fixture
def client(monkeypatch):
    """The hub's client, which takes no other calls than the real one."""
    made = create_autospec(HfApi, instance=True)
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: made)
    return made


@pytest.fixture
def hub(client):
    held = Hub()
    for name in ("model_info", "hf_hub_download", "create_commit"):
        getattr(client, name).side_effect = getattr(held, name)
    return held


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


def test_the_card_tells_the_recipe_of_the_index_that_it_was_compiled_over(mini, hub, tmp_path):
    def indexed(name, text):
        corpus = tmp_path / "corpus.jsonl"
        corpus.write_text("".join(json.dumps({"id": str(n), "text": f"{text} {n}"}) + "\n" for n in range(3)))
        return questree.retrieval.build_index(corpus, tmp_path / name, kind="bm25")

    index, other = indexed("index", "word"), indexed("other", "another")
    over = save(build("searchain", {}, retriever=questree.retrieval.load_index(index)), tmp_path / "over")
    push(over, "hf://me/chain", index=index)
    card = next(iter(hub.commits.values()))["README.md"].decode()
    assert "| index | `bm25 " in card
    assert "`corpus.jsonl`, 3 passages, SHA-256 `" in card
    with pytest.raises(QuestreeError, match="was compiled over"):
        push(over, "hf://me/chain", index=other)
    assert len(hub.commits) == 1


@pytest.mark.parametrize(
    ("kind", "status", "says"),
    [
        (HfHubHTTPError, 401, "wants a token"),
        (GatedRepoError, 403, "only who asked its owner"),
        (RepositoryNotFoundError, 404, "no such repository, or it is private and no token is set"),
        (RevisionNotFoundError, 404, "no such revision"),
        (None, 0, r"hf://me/chain@v1: no route\."),
    ],
)
def test_a_hub_that_refuses_is_told_in_one_line(client, kind, status, says):
    answer = httpx.Response(status, request=httpx.Request("GET", "https://hub")) if kind else None
    client.model_info.side_effect = kind("a\nb", response=answer) if kind else httpx.ConnectError("no route\nat all")
    with pytest.raises(QuestreeError, match=says) as told:
        load("hf://me/chain@v1")
    assert "\n" not in str(told.value)


def test_a_changed_file_and_one_of_gigabytes_are_refused(hub, program, monkeypatch):
    push(program, "hf://me/chain")
    hub.commit({"questree.json": b"{}"})
    with pytest.raises(QuestreeError, match=r"hf://me/chain.*damaged"):
        load("hf://me/chain")
    monkeypatch.setattr(hub_module, "LARGEST", 1)
    with pytest.raises(QuestreeError, match=r"no questree\.json of at most 1 bytes"):
        load("hf://me/chain")


@pytest.mark.parametrize("address", ["hf://me", "hf://me/a/b", "hf://me/a@", "hf://../etc", "hf://me/a b"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(QuestreeError, match="write hf://user/name"):
        parse(address)
