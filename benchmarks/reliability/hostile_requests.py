"""Requests that the retriever's server should refuse, or must not be kept busy by; beside them, honest ones."""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from questree.retrieval import BM25Retriever, Passage
from questree.retrieval.serving.app import create_app
from questree.retrieval.serving.listener import running
from questree.retrieval.serving.server_limits import ServerLimits

HERE = "Host: 127.0.0.1"
HONEST = {"queries": ["amber harbour"], "k": 3}
_SECONDS = 20.0
Draw = random.Random


@dataclass
class Requested:
    """How many requests of each kind were sent, and those that were not answered as they should."""

    tried: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def _sent(line: str, *headers: str, body: bytes = b"", length: int | None = None) -> bytes:
    told = f"Content-Length: {len(body) if length is None else length}"
    return (
        "\r\n".join([line, *headers, told, "Content-Type: application/json", "Connection: close", "", ""]).encode(
            "latin-1"
        )
        + body
    )


def _search(body: Any, *headers: str, path: str = "/search", length: int | None = None) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return _sent(f"POST {path} HTTP/1.1", *(headers or (HERE,)), body=content, length=length)


def _colbert(draw: Draw, body: bytes) -> bytes:
    return _search(body, path=draw.choice(["/", "/api/search"]))


def _deep(draw: Draw) -> bytes:
    count = draw.randrange(500, 20_000)
    return draw.choice([b"[" * count, b"[" * count + b"]" * count, b'{"a":' * count])


def _long(draw: Draw) -> int:
    return draw.randrange(10_000, 30_000)


KINDS: dict[str, tuple[Callable[[Draw], bytes], set[int | None]]] = {
    "no JSON": (lambda draw: _search(draw.randbytes(draw.randrange(300))), {400}),
    "half a JSON": (lambda draw: _search(json.dumps(HONEST).encode()[: draw.randrange(40)]), {400}),
    "deep JSON": (lambda draw: _search(_deep(draw)), {400}),
    "deep JSON, ColBERT's": (lambda draw: _colbert(draw, _deep(draw)), {400}),
    "deep JSON, compared": (lambda draw: _search(_deep(draw), path="/similarity"), {400}),
    "no object": (lambda draw: _search(draw.choice([[], 7, "a", None, True])), {400}),
    "no queries": (lambda draw: _search({"k": draw.randrange(9)}), {400}),
    "an empty list": (lambda draw: _search({"queries": []}), {400}),
    "empty lists, compared": (lambda draw: _search({"texts": [], "others": []}, path="/similarity"), {400}),
    "a blank query": (lambda draw: _search({"queries": [" " * draw.randrange(9)]}), {400}),
    "queries of another type": (lambda draw: _search({"queries": draw.choice([[7], [None], [[]], "a", {}])}), {400}),
    "half a character": (lambda draw: _search(b'{"queries": ["\\ud8%02x"]}' % draw.randrange(256)), {200}),
    "k of another type": (lambda draw: _search({**HONEST, "k": draw.choice(["3", 2.5, None, [], True])}), {400}),
    "k below one": (lambda draw: _search({**HONEST, "k": -draw.randrange(10**9)}), {400}),
    "k too large": (lambda draw: _search({**HONEST, "k": draw.randrange(1_001, 10**12)}), {400}),
    "k infinite": (lambda draw: _search(b'{"queries": ["a"], "k": 1e%d}' % draw.randrange(309, 9_999)), {400}),
    "k infinite, ColBERT's": (lambda draw: _colbert(draw, b'{"query": "a", "k": 1e%d}' % _long(draw)), {400}),
    "k no number, ColBERT's": (lambda draw: _colbert(draw, b'{"query": "a", "k": NaN}'), {400}),
    "k of many digits": (lambda draw: _colbert(draw, b'{"query": "a", "k": %s}' % (b"9" * _long(draw))), {400}),
    "k of many digits, in the address": (
        lambda draw: _sent(f"GET /?query=a&k={'9' * draw.randrange(20, 6_000)} HTTP/1.1", HERE),
        {400},
    ),
    "a query of another type": (lambda draw: _colbert(draw, draw.choice([b'{"query": []}', b'{"query": 7}'])), {400}),
    "too many queries": (lambda draw: _search({"queries": ["a"] * draw.randrange(257, 9_000)}), {400}),
    "too many passages": (lambda draw: _search({"queries": ["a"] * draw.randrange(5, 256), "k": 1_000}), {400}),
    "too many texts": (lambda draw: _search({"texts": ["a"] * 400, "others": ["b"] * 400}, path="/similarity"), {400}),
    "a body too long": (lambda draw: _search(b" " * (2**20 + draw.randrange(1, 9_999))), {413}),
    "a length that is none": (lambda draw: _search(b"", HERE, "Content-Length: -1"), {400}),
    "two lengths": (lambda draw: _search(b"abcdef", HERE, f"Content-Length: {draw.randrange(5)}"), {400}),
    "two transfers": (lambda draw: _search(b"", HERE, "Transfer-Encoding: chunked, chunked"), {400, 501}),
    "a long header": (lambda draw: _search(HONEST, HERE, "X: " + "x" * (2**19 + _long(draw))), {400, None}),
    "a header that is none": (lambda draw: _search(HONEST, HERE, "no header"), {400}),
    "no host": (lambda draw: _search(HONEST, "X: x"), {400}),
    "another host": (lambda draw: _search(HONEST, f"Host: {draw.randrange(10**6)}.example"), {403}),
    "a page of elsewhere": (lambda draw: _search(HONEST, HERE, "Origin: https://page.example"), {403}),
    "a browser, for a page of elsewhere": (lambda draw: _search(HONEST, HERE, "Sec-Fetch-Site: cross-site"), {403}),
    "another path": (lambda draw: _search(HONEST, path=f"/{draw.randrange(10**6)}"), {404}),
    "another method": (lambda draw: _sent(f"{draw.choice(['PUT', 'TRACE', 'DELETE'])} /search HTTP/1.1", HERE), {405}),
    "another protocol": (lambda draw: _sent(f"GET /health {draw.choice(['HTTP', 'HTTP/x', 'FTP/1.1'])}", HERE), {400}),
    "an upgrade": (lambda draw: _sent("GET /search HTTP/1.1", HERE, "Upgrade: websocket"), {405}),
    "bytes that are no request": (lambda draw: b"\0" + draw.randbytes(draw.randrange(9, 300)) + b"\r\n\r\n", {400}),
    "half a head": (lambda draw: b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", set()),
    "half a body": (lambda draw: _search(b"{", length=draw.randrange(9, 9_999)), set()),
}
"""What is sent, by its name, and how it may be answered; None: the connection ends. An empty set: it is never whole."""


class _Comparing(BM25Retriever):
    """BM25 that also compares texts, by their lengths."""

    @property
    def similarity(self) -> Any:
        return lambda texts, others: [[float(len(one) - len(other)) for other in others] for one in texts]


def send_hostile(times: int, seed: int = 0) -> Requested:
    """Send a server so many requests of each kind; after each round an honest one must be answered as before.

    Args:
        times: rounds.
        seed: of what the requests hold.
    """
    draw, found = Draw(seed), Requested()
    passages = [Passage(id=f"p{number}", text=f"amber harbour {number}") for number in range(50)]
    app = create_app(_Comparing.from_passages(passages), limits=ServerLimits(body=2**20))
    with running(app) as address:
        right = _honest(address)
        for _ in range(times):
            for kind, (make, allowed) in KINDS.items():
                found.tried[kind] += 1
                status = _status(address, make(draw), whole=bool(allowed))
                if status not in (allowed or {None}):
                    found.wrong.append(f"{kind}: {status}")
            if _honest(address) != right:
                found.wrong.append("an honest search is answered otherwise")
    return found


def _honest(address: str) -> Any:
    reply = httpx.post(f"{address}/search", json=HONEST, timeout=_SECONDS)
    return reply.json() if reply.status_code == 200 else reply.status_code


def _status(address: str, sent: bytes, *, whole: bool) -> int | None:
    """Return the status of the answer; None if a request is broken off, or the answer is none."""
    host, port = address.removeprefix("http://").split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_SECONDS) as connection:
            connection.sendall(sent)
            if not whole:
                return None
            line = connection.recv(4_096).split(b"\r\n")[0].split()
        return int(line[1]) if len(line) > 1 and line[1].isdigit() else None
    except OSError:
        return None
