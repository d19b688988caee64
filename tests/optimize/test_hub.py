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
from questree.optimize.hub import parse
from questree.programs import build

httpx = getattr(_http, "httpx2", None) or _http.httpx  # huggingface_hub 2 has a successor of httpx


class Hub:
    """The hub as its real client meets it: one repository, its commits, the oldest first."""

    def __init__(self):
        self.commits: dict[str, dict[str, bytes]] = {}
        self.fault: Exception | None = None
        self.refusal: tuple[int, dict[str, str]] | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.fault:
            raise self.fault
        if self.refusal:
            return httpx.Response(self.refusal[0], headers=self.refusal[1], json={})
        path = request.url.path
        if found := re.fullmatch(r"/api/models/me/chain(?:/revision/(.+))?", path):
            sha = found[1] or list(self.commits)[-1]
            files = [{"rfilename": name, "size": len(content)} for name, content in self.commits[sha].items()]
            return httpx.Response(200, json={"id": "me/chain", "sha": sha, "siblings": files})
        if found := re.fullmatch(r"/me/chain/resolve/(.+)/(.+)", path):
            content = self.commits[found[1]][found[2]]
            tags = {"ETag": f'"{_digest(content)}"', "X-Repo-Commit": found[1]}
            return httpx.Response(200, content=content, headers=tags)
        return httpx.Response(404)

    def commit(self, files):
        whole = (list(self.commits.values())[-1] if self.commits else {}) | files
        oid = _digest(repr(sorted(whole.items())).encode())
        self.commits[oid] = whole
        return oid

    def put(self, folder):
        """Hold a program; return its address with the commit."""
        return f"hf://me/chain@{self.commit({'questree.json': (folder / 'questree.json').read_bytes()})}"


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


def test_what_is_there_is_loaded_by_its_commit(hub, program, mini, caplog):
    place = hub.put(program)
    loaded = questree.load(place, retriever=mini.index)
    here = load(program, retriever=mini.index)
    question = mini.dev[0].inputs()
    assert loaded(**question).final_content == here(**question).final_content
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_revision_that_moved_is_told_and_the_named_one_stays(hub, program, mini, caplog, tmp_path):
    first = hub.put(program)
    other = save(build("searchain", {"max_rounds": 2}, retriever=mini.index), tmp_path / "other")
    second = hub.put(other)
    assert load(first, retriever=mini.index).settings.max_rounds == 5
    assert load("hf://me/chain", retriever=mini.index).settings.max_rounds == 2
    assert f"hf://me/chain is {second} today" in caplog.text


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
    hub.put(program)
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
