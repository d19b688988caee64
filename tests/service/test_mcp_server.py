"""The programs asked by the official SDK's client: in process, at an address, and on stdin and stdout."""

import asyncio
import sys
import threading
from contextlib import suppress
from importlib.metadata import version

import pytest
from tiny_world import PASSAGES, RIVER, TitleRetriever

pytest.importorskip("mcp", reason="the SDK is not installed: pip install questree[mcp]")

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from questree.retrieval import BM25Retriever, Passage
from questree.retrieval.serving.listener import running
from questree.service import mcp_server as mcp_module
from questree.service.mcp_server import mcp_app, mcp_server
from questree.service.mcp_start import bare_server

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def server(make_service, tap):
    tap.let(10**6)
    return mcp_server(make_service(), TitleRetriever())


async def ask_and_read(client: Client) -> None:
    """Ask, watch the nodes, search, and read what was cited and found."""
    assert client.server_info.version == version("questree")
    assert {tool.name for tool in (await client.list_tools()).tools} == {"ask", "search"}
    steps: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(f"{progress:g} {message}")

    asked = await client.call_tool("ask", {"question": RIVER.question}, progress_callback=note)
    answer = asked.structured_content
    assert (answer["answer"], answer["answers"]) == ("Vltava", ["Vltava"])
    assert "[1]" in answer["final_content"]
    assert any("Franz Kafka" in step for step in steps)
    told = [step.split(maxsplit=1)[1] for step in steps]
    assert len(told) == len({*told}), "a node is told again only when its line has changed"
    found = (await client.call_tool("search", {"query": "Prague", "k": 2})).structured_content["result"]
    assert [one["title"] for one in found][:1] == ["Prague"]
    for one in [*answer["references"], *found]:
        read = (await client.read_resource(one["uri"])).contents[0]
        assert read.text == f"{one['title']}\n\n{PASSAGES[one['title']].text}"


async def test_in_process(server):
    async with Client(server) as client:
        await ask_and_read(client)
        for tool, given in (("ask", {"question": RIVER.question, "program": "none"}), ("search", {"query": "  "})):
            assert (await client.call_tool(tool, given)).is_error
        with pytest.raises(MCPError, match="search again"):
            await client.read_resource("passage://nowhere")


async def test_an_agent_is_told_the_names_of_the_programs(server):
    async with Client(server) as client:
        (ask,) = (tool for tool in (await client.list_tools()).tools if tool.name == "ask")
        program = ask.input_schema["properties"]["program"]
        assert program["enum"] == ["searchain", "tree-of-reviews"]
        assert program["default"] == "searchain"
        refused = await client.call_tool("ask", {"question": RIVER.question, "program": "serchain"})
        assert refused.is_error
        assert "Did you mean 'searchain'? There are: searchain, tree-of-reviews." in refused.content[0].text
        asked = await client.call_tool("ask", {"question": RIVER.question, "program": ""})
        assert asked.structured_content["answer"] == "Vltava"  # an agent may fill in every argument


async def test_what_was_just_found_can_be_read_however_much_was_found_before(server, monkeypatch):
    monkeypatch.setattr(mcp_module, "_MOST_PASSAGES", 2)
    async with Client(server) as client:
        for query in ("Prague", "Vltava", "Prague"):
            found = (await client.call_tool("search", {"query": query, "k": 2})).structured_content["result"]
            for one in found:
                assert (await client.read_resource(one["uri"])).contents[0].text.startswith(one["title"])


async def test_each_passage_is_read_by_its_own_address(make_service):
    ids = ["a/b", "a%2Fb", "a%252Fb", "AC DC", "Ä?x#y", "{id}"]
    found = [Passage(id=id, text=f"amber {number}") for number, id in enumerate(ids)]
    server = mcp_server(make_service(), BM25Retriever.from_passages(found))

    async with Client(server) as client:
        listed = (await client.call_tool("search", {"query": "amber", "k": 9})).structured_content["result"]
        assert len(listed) == len(ids)
        for one in listed:
            assert (await client.read_resource(one["uri"])).contents[0].text.strip() == one["text"]


def test_at_an_address_with_a_token(server):
    async def talk(address: str) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            await ask_and_read(client)
        async with httpx2.AsyncClient() as http:
            assert (await http.post(f"{address}/mcp", json={})).status_code == 401

    with running(mcp_app(server, TOKEN)) as address:
        asyncio.run(talk(address))


def test_no_page_of_elsewhere_asks(server):
    with running(mcp_app(server)) as address:
        for headers in ({"origin": "http://elsewhere.example"}, {"host": "rebound.example"}):
            assert httpx2.post(f"{address}/mcp", json={}, headers=headers).status_code == 403


@pytest.mark.parametrize(("seconds", "room"), [(600.0, False), (0.001, True)])
def test_sessions_are_bounded_and_end_when_nothing_is_asked(server, monkeypatch, seconds, room):
    monkeypatch.setattr(mcp_module, "_MOST_SESSIONS", 1)
    monkeypatch.setattr(mcp_module, "_SESSION_SECONDS", seconds)
    given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": given}
    headers = {"accept": "application/json, text/event-stream"}
    with running(mcp_app(server)) as address, httpx2.Client() as client:

        def opened() -> bool:
            return client.post(f"{address}/mcp", json=opening, headers=headers).status_code == 200

        assert opened()
        assert any(opened() for _ in range(50)) == room


async def test_a_call_that_is_cancelled_asks_nothing_more(make_service, tap):
    service = make_service()

    async with Client(mcp_server(service, None)) as client:
        call = asyncio.create_task(client.call_tool("ask", {"question": RIVER.question}))
        await asyncio.to_thread(tap.wait_for, 1)
        (question,) = service._questions.values()
        call.cancel()
        await asyncio.wait([question.task])
        assert question.asked.state == "stopped"
        tap.let(10**6)
    assert tap.asked == 1


def test_a_client_that_disconnects_stops_its_question(make_service, tap):
    service, ended = make_service(), threading.Event()

    async def talk(address: str) -> None:
        http = httpx2.AsyncClient(timeout=60)
        async with Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client:
            call = asyncio.create_task(client.call_tool("ask", {"question": RIVER.question}))
            await asyncio.to_thread(tap.wait_for, 1)
            (question,) = service._questions.values()
            loop = question.task.get_loop()
            loop.call_soon_threadsafe(question.task.add_done_callback, lambda _: ended.set())
            await http.aclose()
            await call

    with running(mcp_app(mcp_server(service, None))) as address:
        with suppress(Exception):  # the client's own: its connection is gone
            asyncio.run(talk(address))
        assert ended.wait(30)
        assert tap.asked == 1


async def test_an_agent_is_greeted_before_the_tools_are_loaded(make_service):
    server = bare_server(greeted := threading.Event(), loaded := threading.Event())
    async with Client(server) as client:
        listing = asyncio.create_task(client.list_tools())
        assert await asyncio.to_thread(greeted.wait, 30)
        mcp_server(make_service(), None, server)
        loaded.set()
        assert [tool.name for tool in (await listing).tools] == ["ask"]


async def test_on_stdin_and_stdout(workplace):
    code = "from questree.cli import main; main()"
    command = StdioServerParameters(command=sys.executable, args=["-c", code, "mcp", "direct"], cwd=str(workplace))
    async with Client(command, read_timeout_seconds=60) as client:
        asked = await client.call_tool("ask", {"question": "Who wrote Ulysses?"})
        assert asked.structured_content["final_content"]
