"""Our client before servers that are not well: at fault, confused, stalled, and killed in mid-batch."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from fakes import ScriptedEngine
from starlette.responses import Response

from questree.lm.failure import CallFailedError
from questree.lm.limits import Limits, deadline, limited
from questree.programs import SearChain, TreeOfReviews
from questree.programs.tree import ReasoningTree
from questree.retrieval import Retriever
from questree.retrieval.duplicates import RetrieverDuplicates
from questree.retrieval.serving import remote_requests
from questree.retrieval.serving.client import RemoteRetriever
from questree.retrieval.serving.listener import running
from questree.retrieval.serving.remote_requests import RemoteError, RemoteSettings


class Script:
    """Gives its answers in order, each a status, headers and body; then what a good server gives."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], Any]] = []
        self.seen = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self.seen += 1
        if scope["path"] == "/health":
            answer: Any = health()
            status, headers = 200, {}
        else:
            status, headers, answer = self.answers.pop(0) if self.answers else (200, {}, results())
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        if status == 0:  # the connection breaks after a part of the answer
            head = [(b"content-length", b"1000")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": b'{"fing', "more_body": False})
            return
        await Response(body, status, headers)(scope, receive, send)


def health() -> dict[str, Any]:
    good = {"status": "ok", "name": "colbert-exact", "fingerprint": "f1", "passages": 2, "similarity": True}
    return {**good, "most_passages": 100}


def found(id: str = "a", **changed: Any) -> dict[str, Any]:
    return {"id": id, "title": "", "text": f"text of {id}", "score": 1.0, **changed}


def results(*rankings: Any, **changed: Any) -> dict[str, Any]:
    return {"fingerprint": "f1", "results": list(rankings) or [[found("a"), found("b")]], **changed}


def without(row: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != field}


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[Script, str]]:
    script = Script()
    with running(script) as address:  # type: ignore[arg-type]
        yield script, address


@pytest.fixture
def waits(monkeypatch) -> list[float]:
    """The pauses that are taken, in no time."""
    waits: list[float] = []
    monkeypatch.setattr(remote_requests, "sleep", waits.append)
    return waits


@pytest.fixture
def unwell(scripted, waits):
    """A client with its script, the pauses it took, and few retries."""
    script, address = scripted
    script.answers = []
    settings = RemoteSettings(retries=3, first_pause=0.5, longest_pause=4)
    return RemoteRetriever(address, settings=settings), script, waits


@pytest.mark.parametrize("status", [0, 408, 429, 500, 502, 503, 504])
def test_a_fault_in_passing_is_asked_again(unwell, status):
    remote, script, waits = unwell
    script.answers = [(status, {}, b"")] * 3
    assert [passage.id for passage in remote("q", k=2)] == ["a", "b"]
    assert len(waits) == 3
    assert 0.5 <= waits[0] <= 0.625
    assert waits[1] >= 1
    assert waits[2] >= 2


def test_retries_are_bounded(unwell):
    remote, script, waits = unwell
    script.answers, before = [(503, {}, b"")] * 9, script.seen
    with pytest.raises(RemoteError, match=r"4 attempts.*HTTP 503.*questree serve-retriever"):
        remote("q")
    assert script.seen - before == 4
    assert len(waits) == 3


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("2", 2, 2.5),
        ("0", 0, 0),
        ("86400", 4, 4),
        ("9" * 400, 4, 4),
        ("-5", 0.5, 0.625),
        ("soon", 0.5, 0.625),
        ("nan", 0.5, 0.625),
    ],
)
def test_the_server_s_wish_to_wait_is_heeded_up_to_a_cap(unwell, header, least, most):
    remote, script, waits = unwell
    script.answers = [(503, {"Retry-After": header}, b"")]
    remote("q", k=2)
    assert least <= waits[0] <= most


@pytest.mark.parametrize(
    ("status", "says"), [(401, "QUESTREE_TOKEN"), (404, "address"), (307, "address"), (400, "address")]
)
def test_a_refusal_is_not_asked_again(unwell, status, says):
    remote, script, waits = unwell
    script.answers = [(status, {"Location": "http://127.0.0.1:9/"}, {"error": {"message": "not so"}})]
    with pytest.raises(RemoteError, match=rf"HTTP {status}: not so.*{says}"):
        remote("q")
    assert waits == []


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "JSON"),
        (b"<html>proxy</html>", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 4_000 + b"]" * 4_000, "JSON"),
        ([], "answer"),
        ({"error": "none"}, "fingerprint"),
        (without(results(), "fingerprint"), "fingerprint"),
        (without(results(), "results"), "results"),
        (results(fingerprint=7), "fingerprint"),
        (results(results=None), "results"),
        (results([without(found(), "id")]), r"results\.0\.0\.id"),
        (results([without(found(), "text")]), r"results\.0\.0\.text"),
        (results([found(id=3)]), r"results\.0\.0\.id"),
        (results([found(score="high")]), r"results\.0\.0\.score"),
        (results([found(score=float("nan"))]), r"results\.0\.0\.score"),
        (json.dumps(results()).replace("text of a", "\\ud800").encode(), "JSON"),
        (results([found("a")], [found("b")]), "2 rankings for 1"),
        (results(results=[]), "0 rankings for 1"),
        (results([found("a"), found("b"), found("c")]), "more than 2 passages"),
        (results([found("a"), found("a")]), "one of them twice"),
        (results([found("a"), found("b", score=2.0)]), "order"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_by_name(unwell, answer, says):
    remote, script, waits = unwell
    script.answers = [(200, {}, answer)]
    with pytest.raises(RemoteError, match=rf"{remote.address} gave an answer.*{says}.*questree serve-retriever"):
        remote("q", k=2)
    assert waits == []


def test_another_index_than_at_first_contact_is_refused(unwell):
    remote, script, _ = unwell
    script.answers = [(200, {}, results(fingerprint="f2")), (200, {}, {"fingerprint": "f2", "rows": [[1.0]]})]
    for asked in (lambda: remote("q", k=2), lambda: remote.similarity(["a"], ["b"])):
        with pytest.raises(RemoteError, match=r"now serves the index f2, and served f1"):
            asked()


def test_rows_that_do_not_fit_the_texts_are_refused(unwell):
    remote, script, _ = unwell
    script.answers = [(200, {}, {"fingerprint": "f1", "rows": rows}) for rows in ([], [[1.0, 2.0]], [[1.0], [1.0]])]
    for _ in range(3):
        with pytest.raises(RemoteError, match="rows that do not fit"):
            remote.similarity(["a"], ["b"])


def test_nobody_at_an_address_is_said_so(waits):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(RemoteError, match=rf"127.0.0.1:{port} gave no answer.*ConnectError"):
        RemoteRetriever(f"http://127.0.0.1:{port}")


def test_a_server_that_stalls_is_left(waits):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = RemoteSettings(answer_seconds=0.05, retries=1)
        with pytest.raises(RemoteError, match=r"2 attempts.*ReadTimeout"):
            RemoteRetriever(f"http://127.0.0.1:{silent.getsockname()[1]}", settings=settings)


def test_a_program_tells_a_failed_server_from_a_wrong_answer(unwell):
    remote, script, _ = unwell
    script.answers = [(200, {}, b"garbage")] * 9
    plan = {"planned_chain": [{"query": "Which sea?"}]}
    with dspy.context(lm=dspy.LM("scripted", engine=ScriptedEngine([plan] * 5))):
        prediction = SearChain(remote)(question="Which sea?")
    assert prediction.failure.cause == "retrieval"
    assert "gave an answer that cannot be used" in str(prediction.failure)


class Comparing(Retriever):
    """A retriever whose comparisons a server does; it fails, or never answers."""

    name = fingerprint = "comparing"

    def __init__(self, *, remote: bool, error: Exception | None = None):
        self.remote, self.error, self.ended = remote, error, threading.Event()

    def similarity(self, texts, others):
        if self.error:
            raise self.error
        self.ended.wait()
        return [[0.0] * len(others) for _ in texts]

    def batch(self, queries, k=1):
        return [[] for _ in queries]


def repeats(retriever: Comparing) -> None:
    """Ask SearChain whether a query repeats an earlier one."""
    tree = ReasoningTree(question="q")
    for query in ("Which sea?", "Which lake?"):
        node = tree.grow(None, query=query, answer="a", source="query", stance="supports")
    program = SearChain(retriever, duplicates=RetrieverDuplicates.of(retriever))
    program.shares_outcome(tree, node)


def likeness(retriever: Comparing) -> None:
    """Compare two paragraphs as Tree of Reviews does."""
    TreeOfReviews(retriever).similarity(["a"], ["b"])


@pytest.mark.parametrize("compare", [repeats, likeness])
def test_a_comparison_by_a_server_ends_with_its_question_and_its_failure_is_one(compare):
    silent = Comparing(remote=True)
    with limited(Limits(deadline=0.05)), deadline(), pytest.raises(CallFailedError) as late:
        compare(silent)
    silent.ended.set()
    assert late.value.failure.cause == "deadline"
    with pytest.raises(CallFailedError) as broken:
        compare(Comparing(remote=False, error=RemoteError("gone")))
    assert str(broken.value) == "retrieval: RemoteError: gone"
