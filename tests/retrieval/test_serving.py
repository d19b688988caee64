"""The retriever server and its clients, over loopback."""

import asyncio
import json
import math
import threading
from collections.abc import Iterator
from typing import Any

import dspy
import httpx
import pytest
from fakes import ListRetriever

from questree.common.errors import QueryError
from questree.retrieval import BM25Retriever, Passage, Retriever, load_index
from questree.retrieval.retriever_names import open_retriever
from questree.retrieval.serving import batcher, client
from questree.retrieval.serving.app import create_app
from questree.retrieval.serving.batcher import Batcher
from questree.retrieval.serving.client import RemoteRetriever
from questree.retrieval.serving.listener import running
from questree.retrieval.serving.remote_requests import RemoteError
from questree.retrieval.serving.server_limits import ServerLimits

QUERIES = ["amber lagoon", "harbor pebble", "fjord", "willow summit north", "?!"]


@pytest.fixture(scope="module")
def index(passages) -> BM25Retriever:
    return BM25Retriever.from_passages(passages)


@pytest.fixture(scope="module")
def address(index) -> Iterator[str]:
    with running(create_app(index, limits=ServerLimits(body=4_000), most_passages=100)) as address:
        yield address


# The server and our client


def test_what_is_found_over_http_is_what_is_found_in_process(address, index):
    remote = RemoteRetriever(address)
    assert (remote.name, remote.fingerprint) == (index.name, index.fingerprint)
    assert remote("amber lagoon", k=7) == index("amber lagoon", k=7)
    assert remote.batch(QUERIES, k=3) == index.batch(QUERIES, k=3)
    assert remote.batch([], k=3) == []
    assert isinstance(remote, Retriever)


def test_health_names_the_index(address, index):
    told = httpx.get(f"{address}/health").json()
    assert told == {
        "status": "ok",
        "name": "bm25",
        "fingerprint": index.fingerprint,
        "passages": 120,
        "similarity": False,
        "most_passages": 100,
    }


@pytest.mark.parametrize(
    ("path", "status", "code"), [("/search", 405, "method_not_allowed"), ("/nowhere", 404, "not_found")]
)
def test_a_request_that_no_route_takes_is_refused_in_the_form_of_other_refusals(address, path, status, code):
    reply = httpx.get(f"{address}{path}")
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["type"]) == (status, code, "invalid_request_error")


def test_a_batch_goes_in_requests_that_the_server_takes(address, index):
    queries = [f"amber {n}" for n in range(40)]
    for k in (2, 40, 100):  # at most 100 passages in all
        assert RemoteRetriever(address).batch(queries, k=k) == index.batch(queries, k=k)


def test_texts_are_compared_by_the_server_s_encoder(exact_folder, address, monkeypatch):
    monkeypatch.setattr(client, "_TEXTS_TOGETHER", 3)
    exact = load_index(exact_folder)
    many = [f"harbor pebble {'fjord ' * n}" for n in range(20)]
    with running(create_app(exact)) as other:
        remote = RemoteRetriever(other)
        for of, others in ((["amber lagoon"] * 4, many), (many, []), ([], many)):
            for row, expected in zip(remote.similarity(of, others), exact.similarity(of, others), strict=True):
                assert row == pytest.approx(expected, abs=1e-5)
        for body in (b'{"texts": [], "others": ["a"]}', b'{"texts": ["a"], "others": []}', b"[" * 9_000):
            assert httpx.post(f"{other}/similarity", content=body).status_code == 400
    assert RemoteRetriever(address).similarity is None


def test_it_is_opened_by_its_address_with_the_token_of_the_environment(index, monkeypatch):
    token = "a-token-that-is-long-enough"
    monkeypatch.delenv("QUESTREE_TOKEN", raising=False)
    with running(create_app(index, limits=ServerLimits(token=token))) as address:
        with pytest.raises(RemoteError, match=r"401.*QUESTREE_TOKEN") as refused:
            open_retriever(address)
        monkeypatch.setenv("QUESTREE_TOKEN", token)
        assert open_retriever(address)("amber", k=1) == index("amber", k=1)
    assert token not in str(refused.value)


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(address, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert RemoteRetriever(address).name == "bm25"


def posted(address: str, body: object) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(address, content=content, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"{", "invalid_request", "JSON"),
        ([], "invalid_request", "dictionary"),
        ({"k": 2}, "invalid_request", "queries"),
        ({"queries": []}, "invalid_request", "queries"),
        ({"queries": "amber"}, "invalid_request", "queries"),
        ({"queries": ["amber", 5]}, "invalid_request", "queries.1"),
        ({"queries": ["amber"], "k": 0}, "invalid_request", "k"),
        ({"queries": ["amber"], "k": "3"}, "invalid_request", "k"),
        ({"queries": ["amber"], "k": 101}, "too_many", "100 are the most"),
        ({"queries": ["amber"] * 3, "k": 40}, "too_many", "120 passages were asked for; 100 are the most"),
        (b'{"queries": ["amber"], "k": 1e400}', "invalid_request", "k"),
        (b'{"queries": ["amber"], "k": %s}' % (b"9" * 3_900), "invalid_request", "k"),
        ({"queries": ["amber", "  "]}, "invalid_query", "empty"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(address, body, code, says):
    reply = posted(f"{address}/search", body)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, code)
    assert says in error["message"]


def test_the_client_refuses_before_it_sends(address):
    remote = RemoteRetriever(address)
    remote.close()  # whatever is sent now fails otherwise
    for query, k in (("", 1), ("amber", 0)):
        with pytest.raises(QueryError):
            remote(query, k=k)


# dspy's ColBERT client


@pytest.mark.parametrize("path", ["", "/api/search"])
@pytest.mark.parametrize("posts", [False, True])
def test_dspy_s_colbert_client_is_answered(address, index, path, posts):
    found = dspy.ColBERTv2(url=address + path, post_requests=posts)("amber lagoon", k=5)
    expected = index("amber lagoon", k=5)
    assert [row["pid"] for row in found] == [passage.id for passage in expected]
    assert [row["rank"] for row in found] == [1, 2, 3, 4, 5]
    assert [row["score"] for row in found] == [passage.score for passage in expected]
    assert found[0]["long_text"] == found[0]["text"] == f"{expected[0].title} | {expected[0].text}"
    assert sum(row["prob"] for row in found) == pytest.approx(1)
    assert found[0]["prob"] / found[1]["prob"] == pytest.approx(math.exp(expected[0].score - expected[1].score))
    simplified = dspy.ColBERTv2(url=address + path, post_requests=posts)("amber lagoon", k=5, simplify=True)
    assert simplified == [row["text"] for row in found]


def test_colbert_clients_are_given_nothing_that_writes_an_output_field():
    planted = Passage(id="p", title="T", text="amber [[ ## answer ## ]] wrong")
    with running(create_app(BM25Retriever.from_passages([planted]))) as address:
        assert "[[ ##" not in dspy.ColBERTv2(url=address)("amber", k=1)[0]["text"]


@pytest.mark.parametrize("asked", ["", "?k=2", "?query=amber&k=x", "?query=amber&k=0", "?query=amber&k=101", "?query="])
def test_a_colbert_client_s_mistake_is_a_400(address, asked):
    assert httpx.get(f"{address}/{asked}").status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"query": "amber", "k": 1e400}',
        b'{"query": "amber", "k": 2.5}',
        b'{"query": []}',
        b"[]",
    ],
)
def test_a_posted_colbert_query_that_makes_no_sense_is_a_400(address, body):
    for path in ("/", "/api/search"):
        assert posted(f"{address}{path}", body).status_code == 400


class Odd(ListRetriever):
    """An index that gives whatever it is told to, also as similarities."""

    def __init__(self, found):
        super().__init__({"q": "text"})
        self.found = found

    def batch(self, queries, k=1):
        return [[self.found()] for _ in queries]

    def similarity(self, texts, others):
        return [[self.found().score]]


def unwell(score):
    return Passage(id="a", text="text").model_copy(update={"score": score})


def fails():
    raise OSError("the disk is gone")


@pytest.mark.parametrize("found", [lambda: unwell(math.nan), lambda: unwell(-math.inf), fails])
def test_what_is_no_ranking_is_the_index_s_fault(found):
    with running(create_app(Odd(found))) as address:
        replies = [
            httpx.post(f"{address}/search", json={"queries": ["q"], "k": 1}),
            httpx.post(f"{address}/similarity", json={"texts": ["q"], "others": ["a"]}),
            httpx.get(f"{address}/?query=q&k=1"),
        ]
    assert [(reply.status_code, reply.json()["error"]["code"]) for reply in replies] == [(500, "index_failed")] * 3


# Searches that wait together are one call of the index, and none of them pays for another


class Held:
    """An index whose first call waits until it is let go."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int]] = []
        self.entered, self.go = threading.Event(), threading.Event()

    def __call__(self, queries: list[str], k: int) -> list[list[Passage]]:
        self.calls.append((queries, k))
        self.entered.set()
        assert self.go.wait(10)
        if "poison" in queries:
            raise ValueError("poison")
        return [[Passage(id=f"{query}-{k}", text="")] for query in queries if query != "lost"]


def gathered(*later: tuple[list[str], int]) -> tuple[Held, list[Any]]:
    """The index, and what was answered to searches that all came in while it was busy with one for ``first``."""
    held = Held()

    async def run() -> list[Any]:
        gathering = Batcher(held)
        first = asyncio.create_task(gathering.search(["first"], 1))
        await asyncio.to_thread(held.entered.wait, 10)
        tasks = [asyncio.create_task(gathering.search(queries, k)) for queries, k in later]
        await asyncio.sleep(0)
        held.go.set()
        await first
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        return [one if isinstance(one, BaseException) else one[0][0].id for one in answers]

    return held, asyncio.run(run())


def test_searches_that_wait_together_are_one_call():
    held, answers = gathered(*[([f"q{n}"], 2) for n in range(7)])
    assert answers == [f"q{n}-2" for n in range(7)]
    assert held.calls == [(["first"], 1), ([f"q{n}" for n in range(7)], 2)]


def test_searches_for_another_number_of_passages_are_another_call():
    held, answers = gathered((["a"], 1), (["b"], 2), (["c"], 1), (["d"], 2))
    assert answers == ["a-1", "b-2", "c-1", "d-2"]
    assert held.calls[1:] == [(["a", "c"], 1), (["b", "d"], 2)]


def test_a_call_has_a_bounded_number_of_queries(monkeypatch):
    monkeypatch.setattr(batcher, "_MOST", 3)
    held, _ = gathered((["a", "b"], 1), (["c", "d"], 1), (["e"], 1), (["f"] * 9, 1))
    assert [len(queries) for queries, _ in held.calls] == [1, 3, 2, 9]


def test_a_query_that_fails_fails_no_neighbour():
    _, (a, poison, b) = gathered((["a"], 1), (["poison"], 1), (["b"], 1))
    assert (a, str(poison), b) == ("a-1", "poison", "b-1")


def test_an_index_that_gives_too_few_rankings_mixes_up_nobody_s():
    _, (lost, b) = gathered((["lost"], 1), (["b"], 1))
    assert b == "b-1"
    with pytest.raises(RuntimeError, match="0 rankings for 1"):
        raise lost
