"""What every server of ours keeps to."""

import socket
from typing import Any

import httpx
import pytest
from fakes import ListRetriever
from fastapi.testclient import TestClient
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
ASKED = {"queries": ["q"], "k": 1}


def reply(app: Any, method: str, path: str, **sent: Any) -> httpx.Response:
    return TestClient(app, base_url="http://localhost").request(method, path, **sent)


def served(limits: ServerLimits) -> Any:
    return create_app(ListRetriever({"q": "text"}), limits=limits)


def posted(limits: ServerLimits, **changed: Any) -> httpx.Response:
    return reply(served(limits), "POST", "/search", **{"json": ASKED, **changed})


@pytest.mark.parametrize("given", [None, "", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer é"])
def test_without_its_token_a_server_answers_nothing(given):
    headers = {} if given is None else {"Authorization": given.encode()}
    refused = posted(ServerLimits(token=TOKEN), headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_token")
    assert TOKEN not in refused.text
    assert reply(served(ServerLimits(token=TOKEN)), "GET", "/health").status_code == 401


def test_the_simulated_lm_s_server_asks_for_its_token_too():
    app = create_simulated(SimulatedEngine(Mind(World(QUESTIONS), BLANK)), limits=ServerLimits(token=TOKEN))
    assert reply(app, "GET", "/v1/models").status_code == 401
    assert reply(app, "GET", "/v1/models", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


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
def test_without_a_token_it_answers_no_page_of_elsewhere(headers):
    refused = posted(ServerLimits(), headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "foreign")
    with_token = posted(ServerLimits(token=TOKEN), headers=headers | {"Authorization": f"Bearer {TOKEN}"})
    assert with_token.status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8893", "127.0.0.1:1", "[::1]", "[::1]:8893"])
def test_without_a_token_it_answers_this_machine(host):
    assert posted(ServerLimits(), headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200


def test_a_body_that_is_no_json_is_a_400():
    for body in (b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"[]", b"1e400"):
        assert posted(ServerLimits(), json=None, content=body).status_code == 400


def test_with_its_token_it_does():
    for scheme in ("Bearer", "bearer"):  # in any case, as HTTP has it
        assert posted(ServerLimits(token=TOKEN), headers={"Authorization": f"{scheme} {TOKEN}"}).status_code == 200


def test_a_long_body_is_refused_whether_its_length_is_told_or_not():
    for sent in ({}, {"json": None, "content": iter([b"  "] * 10)}):
        refused = posted(ServerLimits(body=10), **sent)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")


def test_more_connections_than_it_takes_are_turned_away(monkeypatch):
    monkeypatch.setattr(listener, "CONNECTIONS", 2)
    with running(served(ServerLimits())) as address, httpx.Client() as one, httpx.Client() as other:
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
    with running(served(ServerLimits())) as address:
        port = int(address.rsplit(":", 1)[1])
        with pytest.raises(QuestreeError, match=f"127.0.0.1:{port} cannot be listened at.*--port"):
            listening("127.0.0.1", port)
