import base64
import hashlib
import json
import logging
import re

import huggingface_hub
import pytest
from huggingface_hub.utils import _http

import questree
from questree.common.errors import QuestreeError
from questree.optimize import hub as hub_module
from questree.optimize import load, save
from questree.optimize.card import push
from questree.optimize.hub import parse
from questree.programs import build

httpx = getattr(_http, "httpx2", None) or _http.httpx  # huggingface_hub 2 has a successor of httpx


class Hub:
    """The hub as its real client meets it: one repository, a commit for each push, the oldest first."""

    def __init__(self):
        self.commits: dict[str, dict[str, bytes]] = {}
        self.fault: Exception | None = None
        self.refusal: tuple[int, dict[str, str]] | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.fault:
            raise self.fault
        if self.refusal:
            return httpx.Response(self.refusal[0], headers=self.refusal[1], json={})
        path, asked = request.url.path, request.read()
        if path == "/api/repos/create":
            return httpx.Response(200, json={"url": "https://huggingface.co/me/chain"})
        if path == "/api/models/me/chain/preupload/main":
            names = [one["path"] for one in json.loads(asked)["files"]]
            kept = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return httpx.Response(200, json={"files": kept})
        if path == "/api/models/me/chain/commit/main":
            sent = [line["value"] for line in map(json.loads, asked.splitlines()) if line["key"] == "file"]
            oid = self.commit({one["path"]: base64.b64decode(one["content"]) for one in sent})
            told = {"commitUrl": f"https://huggingface.co/me/chain/commit/{oid}", "commitOid": oid}
            return httpx.Response(200, json=told)
        if found := re.fullmatch(r"/api/models/me/chain(?:/revision/(.+))?", path):
            sha = found[1] or list(self.commits)[-1]
            files = [{"rfilename": name, "size": len(content)} for name, content in self.commits[sha].items()]
            return httpx.Response(200, json={"id": "me/chain", "sha": sha, "siblings": files})
        if found := re.fullmatch(r"/me/chain/resolve/(.+)/(.+)", path):
            content = self.commits[found[1]][found[2]]
            tags = {"ETag": f'"{_digest(content)}"', "X-Repo-Commit": found[1]}
            return httpx.Response(200, content=content, headers=tags)
        return httpx.Response(200, json={"errors": [], "warnings": []})  # of the card's head

    def commit(self, files):
        whole = (list(self.commits.values())[-1] if self.commits else {}) | files
        oid = _digest(repr(sorted(whole.items())).encode())
        self.commits[oid] = whole
        return oid


def _digest(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@pytest.fixture
def hub():
    held = Hub()
    huggingface_hub.set_client_factory(lambda: httpx.Client(transport=httpx.MockTransport(held)))
    yield held
    huggingface_hub.set_client_factory(_http.default_client_factory)


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
    ("how", "answer", "says"),
    [
        ("refusal", (401, {"X-Error-Message": "Invalid credentials in Authorization header"}), "wants a token"),
        ("refusal", (403, {"X-Error-Code": "GatedRepo"}), "only who asked its owner"),
        ("refusal", (404, {"X-Error-Code": "RepoNotFound"}), "no such repository, or it is private and no token"),
        ("refusal", (404, {"X-Error-Code": "RevisionNotFound"}), "no such revision"),
        ("fault", httpx.ConnectError("no route\nat all"), r"the hub cannot be reached \(no route\); .*HTTPS_PROXY"),
        ("fault", httpx.ProxyError("407 Proxy Auth"), r"the hub cannot be reached \(407 Proxy Auth.*HTTPS_PROXY"),
        ("fault", json.JSONDecodeError("Expecting value", "<html>", 0), r"what answers is not the hub \(Expecting"),
    ],
)
def test_a_hub_that_refuses_or_cannot_be_reached_is_told_in_one_line(hub, how, answer, says):
    setattr(hub, how, answer)
    with pytest.raises(QuestreeError, match=rf"hf://me/chain@v1.*{says}") as told:
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
