"""What every server of ours keeps to: the retriever's and the simulated LM's."""

import asyncio
import socket
from typing import Any

import httpx
import pytest
from fakes import ListRetriever
from tiny_world import BLANK, QUESTIONS

from questree.common.errors import QuestreeError
from questree.retrieval.serving import listener
from questree.retrieval.serving.access import is_loopback, read_token
from questree.retrieval.serving.app import create_app
from questree.retrieval.serving.listener import listening, running
from questree.retrieval.serving.server_limits import ServerLimits
from questree.simulate import Mind, SimulatedEngine, World
from questree.simulate import create_app as create_simulated

TOKEN = "a-token-that-is-long-enough"
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "retriever": ("/search", {"queries": ["q"], "k": 1}),
    "simulated": ("/v1/chat/completions", {"model": "simulated", "messages": [{"role": "user", "content": "Hello."}]}),
}


@pytest.fixture(params=list(ASKED))
def kind(request) -> str:
    return request.param


def made(kind: str, limits: ServerLimits) -> Any:
    if kind == "retriever":
        return create_app(ListRetriever({"q": "text"}), limits=limits)
    return create_simulated(SimulatedEngine(Mind(World(QUESTIONS), BLANK)), limits=limits)


def reply(kind: str, limits: ServerLimits, method: str, path: str, **sent: Any) -> httpx.Response:
    async def answered() -> httpx.Response:
        transport = httpx.ASGITransport(app=made(kind, limits))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **sent)

    return asyncio.run(answered())


def posted(kind: str, limits: ServerLimits, **changed: Any) -> httpx.Response:
    path, body = ASKED[kind]
    return reply(kind, limits, "POST", path, **{"json": body, **changed})


@pytest.mark.parametrize("given", [None, "", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer é"])
def test_without_its_token_a_server_answers_nothing(kind, given):
    headers = {} if given is None else {"Authorization": given.encode()}
    refused = posted(kind, ServerLimits(token=TOKEN), headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_token")
    assert TOKEN not in refused.text
    assert reply(kind, ServerLimits(token=TOKEN), "GET", "/health").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:8893"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Host": "127.0.0.1@attacker.example"},
        {"Host": "10.0.0.1"},
        {"Host": "[::1"},
        {"Host": ""},
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_without_a_token_it_answers_no_page_of_elsewhere(kind, headers):
    refused = posted(kind, ServerLimits(), headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "foreign")
    with_token = posted(kind, ServerLimits(token=TOKEN), headers=headers | {"Authorization": f"Bearer {TOKEN}"})
    assert with_token.status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8893", "127.0.0.1:1", "[::1]", "[::1]:8893"])
def test_without_a_token_it_answers_this_machine(kind, host):
    assert posted(kind, ServerLimits(), headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200


def test_a_body_that_is_no_json_is_a_400(kind):
    for body in (b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"[]", b"1e400"):
        assert posted(kind, ServerLimits(), json=None, content=body).status_code == 400


def test_with_its_token_it_does(kind):
    for scheme in ("Bearer", "bearer"):  # in any case, as HTTP has it
        assert (
            posted(kind, ServerLimits(token=TOKEN), headers={"Authorization": f"{scheme} {TOKEN}"}).status_code == 200
        )


def test_a_long_body_is_refused_whether_its_length_is_told_or_not(kind):
    async def pieces():
        for _ in range(10):
            yield b"  "

    for sent in ({}, {"json": None, "content": pieces()}):
        refused = posted(kind, ServerLimits(body=10), **sent)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")


def test_more_connections_than_it_takes_are_turned_away(monkeypatch):
    monkeypatch.setattr(listener, "CONNECTIONS", 2)
    host = ListRetriever({"q": "text"})
    with running(create_app(host)) as address, httpx.Client() as one, httpx.Client() as other:
        assert one.get(f"{address}/health").status_code == 200
        assert other.get(f"{address}/health").status_code == 503


LOOPBACK = ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost")


@pytest.mark.parametrize("host", [*LOOPBACK, "0.0.0.0", "::", "10.0.0.1", "localhost.example.org", ""])
def test_loopback_is_this_machine_s_alone(host):
    assert is_loopback(host) == (host in LOOPBACK)


def test_a_token_is_read_from_its_file_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("QUESTREE_TOKEN", raising=False)
    assert read_token() is None
    monkeypatch.setenv("QUESTREE_TOKEN", TOKEN)
    (tmp_path / "token").write_text(f"{TOKEN}-of-the-file\n")
    assert read_token() == TOKEN
    assert read_token(tmp_path / "token") == f"{TOKEN}-of-the-file"


@pytest.mark.parametrize("content", ["", "short", "a token with\nanother line", "ein-Schlüssel-mit-ü-darin", None])
def test_a_token_that_is_none_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(QuestreeError, match="token"):
        read_token(tmp_path / "token")


def test_limits_do_not_show_their_token():
    assert TOKEN not in repr(ServerLimits(token=TOKEN))


def test_answers_do_not_wait_for_acknowledgements():
    with listening("127.0.0.1", 0) as taken:  # asyncio turns Nagle's algorithm off only where it sees that this is TCP
        assert taken.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken_is_named():
    with running(made("retriever", ServerLimits())) as address:
        port = int(address.rsplit(":", 1)[1])
        with pytest.raises(QuestreeError, match=f"127.0.0.1:{port} cannot be listened at.*--port"):
            listening("127.0.0.1", port)
