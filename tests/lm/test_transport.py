"""Replies that never end or are too large, and those that nobody waits for any more: nothing is held for them."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import dspy
import httpx
import pytest

from questree import program
from questree.lm import transport
from questree.lm.limits import Limits, limited

TEXT = "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"
CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}
REPLY = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "x", "choices": [CHOICE]}).encode()
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REPLY) + REPLY


@pytest.fixture
def served() -> Iterator[Callable[..., SimpleNamespace]]:
    """Serve an LM that first says this, then this again and again; gives what became of its connections."""
    with ExitStack() as stack:

        def serve(first: bytes, again: bytes = b"") -> SimpleNamespace:
            world = SimpleNamespace(first=first, again=again, closed=threading.Semaphore(0), written=0, asked=0)

            class Handler(BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"

                def do_POST(self):
                    self.rfile.read(int(self.headers["Content-Length"]))
                    world.asked += 1
                    if world.first == WHOLE:
                        self.wfile.write(WHOLE)
                        return
                    with suppress(OSError):
                        self.wfile.write(world.first)
                        while world.again:
                            world.written += self.wfile.write(world.again)
                        self.rfile.read(1)  # silent until the client closes
                    self.close_connection = True
                    world.closed.release()

                def log_message(self, *said):
                    pass

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.shutdown)
            address = f"http://127.0.0.1:{server.server_port}/v1"
            lm = dspy.LM("openai/x", api_base=address, api_key="none", cache=False, num_retries=0, timeout=60)
            stack.callback(lm.close)
            stack.enter_context(dspy.context(lm=lm, adapter=None))
            return world

        yield serve


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\nX-Unfinished: ", CHUNKED, CHUNKED + b"5\r\n     "],
    ids=["nothing", "half a head", "no body", "half a body"],
)  # fmt: skip
def test_a_connection_is_closed_when_its_question_has_failed_and_the_client_lives_on(first, served):
    world = served(WHOLE)
    program("direct")(question="What?")  # the first request of a process takes longer: it imports the client
    world.first = first
    with limited(Limits(deadline=0.5)):
        failed = [program("direct")(question="What?").failure.cause for _ in range(3)]
    assert {*failed} <= {"timeout", "deadline"}
    assert all(world.closed.acquire(timeout=20) for _ in range(3))
    world.first = WHOLE
    assert program("direct")(question="What?").answer == "Paris"


def test_on_an_event_loop_it_is_closed_too_when_the_question_fails_or_is_cancelled(served):
    world, threads = served(CHUNKED), threading.active_count()

    async def ask() -> None:
        with limited(Limits(deadline=2)):
            several = [asyncio.ensure_future(program("direct").acall(question="What?")) for _ in range(6)]
        while world.asked < 6:
            await asyncio.sleep(0)
        for question in several[:3]:
            question.cancel()
        outcomes = await asyncio.gather(*several, return_exceptions=True)
        assert [type(one) for one in outcomes[:3]] == [asyncio.CancelledError] * 3
        assert {one.failure.cause for one in outcomes[3:]} <= {"timeout", "deadline"}
        assert await asyncio.to_thread(lambda: all(world.closed.acquire(timeout=20) for _ in range(6)))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await dspy.settings.lm.aclose()

    asyncio.run(ask())
    assert threading.active_count() <= threads


OPTIONS = {
    "a key": {"api_key": "other"},
    "a key that is asked for": {"api_key": lambda: "other"},
    "a timeout": {"timeout": 7},
    "a timeout of parts": {"timeout": httpx.Timeout(9, connect=3)},
}


@pytest.mark.parametrize("on_an_event_loop", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_the_lm_has_clients_of_ours_alone_whatever_its_options(options, on_an_event_loop, served):
    """Ours stands where DSPy looks for its own, which would have no bound; it makes none beside it."""
    served(WHOLE)
    lm = dspy.settings.lm.copy(**OPTIONS[options])
    clients, direct = lm._engine_store, program("direct")
    with dspy.context(lm=lm):
        for _ in range(2):
            reply = asyncio.run(direct.acall(question="What?")) if on_an_event_loop else direct(question="What?")
            assert reply.answer == "Paris"
    assert lm._engine_store is clients
    assert len(clients) == (2 if on_an_event_loop else 1)  # of the last loop, and of threads
    assert {client.config.transport.__class__.__module__ for client in clients.values()} == {transport.__name__}


@pytest.mark.parametrize("on_an_event_loop", [False, True])
def test_an_endless_reply_ends_at_the_largest_size(served, monkeypatch, on_an_event_loop):
    monkeypatch.setattr(transport, "LARGEST_BODY", 1 << 20)
    world = served(CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n")
    direct, asked = program("direct"), {"question": "What?"}
    failure = (asyncio.run(direct.acall(**asked)) if on_an_event_loop else direct(**asked)).failure
    assert failure.cause == "server"
    assert "the reply is larger than 1,048,576 bytes" in failure.message
    assert world.closed.acquire(timeout=20)
    assert world.written < 1 << 25  # what the system's buffers take


@pytest.mark.parametrize(("room", "cause"), [(0, None), (-1, "server")])
def test_a_reply_of_exactly_the_largest_size_is_read(room, cause, served, monkeypatch):
    monkeypatch.setattr(transport, "LARGEST_BODY", len(REPLY) + room)
    served(WHOLE)
    failure = program("direct")(question="What?").failure
    assert (failure and failure.cause) == cause


@pytest.mark.parametrize("timeout", [0.3, 60])
def test_a_reply_of_which_bytes_come_without_end_ends_with_the_time_of_its_request(timeout, served):
    world = served(CHUNKED, b"1\r\n \r\n")
    with limited(Limits(deadline=1, timeout=timeout, retries=0)):
        assert program("direct")(question="What?").failure.cause in ("timeout", "deadline")
    assert world.closed.acquire(timeout=20)
