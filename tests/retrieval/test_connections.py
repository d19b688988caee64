"""Clients that neither ask nor read, before a server of ours: they keep nobody waiting."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any

import httpx
import pytest
from fakes import ListRetriever

from questree.retrieval.serving import connections
from questree.retrieval.serving.app import create_app
from questree.retrieval.serving.listener import running
from questree.retrieval.serving.server_limits import Limits

HALF_A_HEAD = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
HALF_A_BODY = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n{"
BODY = b'{"queries": ["long"], "k": 1}'
ASKED = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
LONG = 12 << 20  # more than the system holds of an answer that is not read
FEW = 8


def few(monkeypatch) -> None:
    """Keep few connections from now on; many may still be taken at once."""
    monkeypatch.setattr(connections, "_MOST", FEW)


def soon(monkeypatch, state: Any) -> None:
    """Wait for nobody in this state."""
    monkeypatch.setitem(connections._SECONDS, state, 0.05)


@contextmanager
def serving(limits: Limits | None = None) -> Iterator[str]:
    with running(create_app(ListRetriever({"q": "text", "long": "x" * LONG}), limits=limits)) as address:
        yield address


@contextmanager
def clients(address: str, sent: bytes, count: int) -> Iterator[list[socket.socket]]:
    """Connections on which this was sent, and nothing else happens."""
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            host, port = address.removeprefix("http://").split(":")
            one = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
            one.sendall(sent)
            opened.append(one)
        yield opened


def answer(address: str) -> int:
    return httpx.post(f"{address}/search", json={"queries": ["q"], "k": 1}, timeout=20).status_code


def rest(one: socket.socket) -> int:
    """How many bytes come until the server closes the connection."""
    count = 0
    try:
        while got := len(one.recv(1 << 20)):
            count += got
    except ConnectionResetError:
        pass
    return count


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY])
def test_many_that_do_not_ask_make_room_for_one_that_does(monkeypatch, sent):
    with serving(Limits(concurrency=1, waiting=0)) as address:
        few(monkeypatch)
        with clients(address, sent, 4 * FEW) as waiting:
            assert answer(address) == 200
            assert [rest(one) for one in waiting[: 3 * FEW]] == [0] * 3 * FEW  # the first ones have been left


def test_one_that_is_worked_for_does_not_make_room(monkeypatch):
    asked, go = Event(), Event()

    class Slow(ListRetriever):
        def batch(self, queries, k=1):
            asked.set()
            go.wait(20)
            return super().batch(queries, k)

    with running(create_app(Slow({"long": "text"}))) as address, clients(address, ASKED, 1) as (early,):
        asked.wait(20)
        few(monkeypatch)
        with clients(address, HALF_A_HEAD, 3 * FEW) as waiting:
            assert rest(waiting[0]) == 0
            go.set()
            assert early.recv(1 << 20).startswith(b"HTTP/1.1 200")


def test_a_head_that_does_not_arrive_is_not_awaited_for_ever(monkeypatch):
    soon(monkeypatch, "head")
    with serving() as address, clients(address, HALF_A_HEAD, 1) as (one,):
        assert rest(one) == 0


def test_after_an_answer_only_a_new_request_is_waited_for(monkeypatch):
    soon(monkeypatch, "head")
    with serving(Limits(token="x" * 16)) as address, clients(address, HALF_A_BODY, 1) as (one,):
        assert b"401" in one.recv(1 << 20)  # the rest of the refused body may come for ever
        one.sendall(b" ")
        assert rest(one) < 1000


def test_an_answer_that_is_not_read_in_time_is_given_up(monkeypatch):
    soon(monkeypatch, "answer")
    left, leave = Event(), connections.Connection.leave
    monkeypatch.setattr(connections.Connection, "leave", lambda self: (leave(self), left.set()))
    with serving() as address, clients(address, ASKED, 1) as (one,):
        assert left.wait(20)  # nothing is read before
        assert rest(one) < LONG
        assert answer(address) == 200


def test_answers_that_are_not_read_hold_a_bounded_memory(monkeypatch):
    monkeypatch.setattr(connections, "_UNREAD", LONG)
    with serving() as address, clients(address, ASKED, 5) as unread:
        assert [one.recv(9) for one in unread] == [b"HTTP/1.1 "] * 5  # now all have been answered
        whole = [one for one in unread if rest(one) > LONG - 100]
        assert 1 <= len(whole) <= 2
        assert answer(address) == 200


def test_a_server_that_ends_does_not_wait_for_half_a_request():
    with ExitStack() as stack:
        with serving() as address:
            (half,) = stack.enter_context(clients(address, HALF_A_BODY, 1))
            assert answer(address) == 200
        assert rest(half) == 0  # and not 408, which would have taken until the end of its patience


@pytest.mark.parametrize(("allowed", "most"), [(256, 85), (1024, 341), (20_000, 512), (-1, 512)])
def test_connections_leave_files_to_others(monkeypatch, allowed, most):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    assert connections.most_connections() == most
