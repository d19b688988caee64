"""What goes wrong between a client and a server, on a schedule that a seed draws; for an LM's server and a retriever's.

A fault is drawn for the n-th time that the same request comes, so it does not depend on the order in which requests
of several threads arrive: the same run meets the same faults.
"""

import hashlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ABSURD_WAIT = 86_400  # seconds that a server may ask a client to wait
DRIP = 0.1  # seconds from byte to byte


@dataclass(frozen=True)
class Fault:
    """How one request is not answered as it should be.

    Attributes:
        kind: its name.
        status: of the answer.
        body: of the answer; None for the server's own, `change`\\ d.
        headers: of the answer.
        change: what becomes of the server's own answer (a JSON value); None if it cannot be changed so, in which
            case it is given as it is and counts as none.
        broken: the connection: ``reset`` before an answer, ``dropped`` in the middle of one, ``stalled`` until the
            client gives up, ``dripping`` a byte now and then.
        raw: what is sent in place of an answer, its head included, before the connection ends.
    """

    kind: str
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[Any], Any] | None = None
    broken: str | None = None
    raw: bytes | None = None


TRANSPORT = (
    Fault("429", 429, b'{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}'),
    Fault("429 with Retry-After", 429, b'{"error": {"message": "slow down"}}', {"Retry-After": "2"}),
    Fault("429 with a date", 429, b"slow down", {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    Fault("429 for a day", 429, b'{"error": {"message": "slow down"}}', {"Retry-After": str(ABSURD_WAIT)}),
    Fault("500", 500, b'{"error": {"message": "internal error"}}'),
    Fault("503", 503, b"<html>no backend</html>", {"Retry-After": "1"}),
    Fault("504", 504, b"upstream timed out"),
    Fault("elsewhere", 307, b"", {"Location": "http://127.0.0.1:9/"}),
    Fault("reset", broken="reset"),
    Fault("dropped", broken="dropped"),
    Fault("stall", broken="stalled"),
    Fault("drip", broken="dripping"),
    Fault("not JSON", 200, b"<html>please log in</html>"),
    Fault("empty body", 200, b""),
    Fault("other JSON", 200, b"[]"),
    Fault("deep JSON", 200, b"[" * 100_000),
    Fault("no HTTP", raw=b"\x16\x03\x01\x02\x00\x01\xff\r\n\r\n"),
    Fault("half a chunk", raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}"),
)
"""What any server may do."""


class Schedule:
    """Which request meets which fault.

    Args:
        faults: drawn from, each as likely as the others.
        rate: share of the requests that meet one, from 0 to 1.
        seed: of the draws.
    """

    def __init__(self, faults: Sequence[Fault], rate: float = 0.3, seed: int = 0):
        self.faults, self.rate, self.seed = tuple(faults), rate, seed
        self.log: list[str | None] = []
        self._seen: Counter[bytes] = Counter()
        self._lock = threading.Lock()

    def draw(self, request: bytes) -> Fault | None:
        """The fault that this request meets; None for a proper answer."""
        with self._lock:
            self._seen[request] += 1
            text = b"%d|%d|" % (self.seed, self._seen[request]) + request
        number = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        if not self.faults or (number % 2**32) / 2**32 >= self.rate:
            return None
        return self.faults[(number >> 64) % len(self.faults)]

    def note(self, kind: str | None) -> None:
        """What a request met; called once for each, before the answer."""
        with self._lock:
            self.log.append(kind)

    @property
    def requests(self) -> int:
        """How many came."""
        return len(self.log)

    @property
    def met(self) -> Counter[str]:
        """Faults that were given, by kind."""
        return Counter(kind for kind in self.log if kind is not None)


Answer = Callable[[str, bytes], tuple[int, Any]]
"""The proper answer to a request: from its path and body, the status and a JSON value, or bytes."""


@contextmanager
def at_fault(answer: Answer, schedule: Schedule) -> Iterator[str]:
    """A server on a free loopback port that answers as it should, but for what the schedule draws; gives its address.

    It is for the client's side of a fault: one thread for each connection, no limits.
    """
    server = _Server(answer, schedule)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.ending.set()
        server.shutdown()
        server.server_close()
        server.close_connections()


@contextmanager
def refusing() -> Iterator[str]:
    """An address on loopback where every connection is refused."""
    with socket.socket() as held:  # bound, so that nobody else gets it, and never listened at
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Answer, schedule: Schedule):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.schedule, self.ending = answer, schedule, threading.Event()
        self.connections = set[socket.socket]()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread, and remember the connection."""
        self.connections.add(request)
        super().process_request(request, client_address)

    def close_connections(self) -> None:
        """End all connections: a later server may have this port, and a client may have kept one."""
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are written apart: the body would wait for 40 ms
    server: _Server

    def do_POST(self) -> None:
        """A question."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.schedule.draw(self.path.encode() + b" " + body)
        if fault is not None and fault.raw is not None:
            self.server.schedule.note(fault.kind)
            self.close_connection = True
            self.wfile.write(fault.raw)
        elif fault is None or fault.body is None:
            self.answer_own(fault, body)
        else:
            self.server.schedule.note(fault.kind)
            self.send(fault.status, fault.body, fault.headers)

    def do_GET(self) -> None:
        """A look at the server's health, which is not at fault."""
        self.send_json(*self.server.answer(self.path, b""))

    def answer_own(self, fault: Fault | None, body: bytes) -> None:
        status, answer = self.server.answer(self.path, body)
        if fault is not None and fault.change is not None:
            changed = fault.change(answer)
            fault, answer = (None, answer) if changed is None else (fault, changed)
        self.server.schedule.note(fault.kind if fault else None)
        if fault is not None and fault.broken is not None:
            self.break_off(fault.broken, json_bytes(answer))
        else:
            self.send_json(status, answer)

    def break_off(self, how: str, content: bytes) -> None:
        self.close_connection = True
        if how == "stalled":
            self.server.ending.wait(ABSURD_WAIT)
        elif how == "dripping":
            self.begin(200, len(content), {})
            for byte in content:
                self.wfile.write(bytes([byte]))
                if self.server.ending.wait(DRIP):
                    return
        elif how == "dropped":
            self.begin(200, len(content), {})
            self.wfile.write(content[: len(content) // 2])
        else:  # closing with no time to linger resets the connection
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()

    def send_json(self, status: int, answer: Any) -> None:
        self.send(status, json_bytes(answer), {"Content-Type": "application/json"})

    def send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.begin(status, len(content), headers)
        self.wfile.write(content)

    def begin(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the schedule keeps the log."""


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as it goes over the wire; bytes go as they are."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()
