"""A server of the simulated LM that counts each request as it comes, and tells usage as one of several servers does."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from questree.simulate import Mind, SimulatedEngine
from questree.simulate.server import chat_completion, read_request

USAGES: dict[str, Callable[[dict[str, int]], Any]] = {
    "whole": lambda usage: usage,
    "null": lambda usage: None,
    "total only": lambda usage: {"total_tokens": usage["total_tokens"]},
}


class Till:
    """What the server was asked.

    Attributes:
        address: of the server.
        requests: so far.
        usage: how it tells what a reply took, of `USAGES`.
        choices: in each reply.
    """

    def __init__(self, mind: Mind):
        self.mind, self.address, self.requests = mind, "", 0
        self.usage, self.choices = "whole", 1
        self._waited: tuple[int, Callable[[], int | None], tuple[int, ...]] | None = None
        self._counting = threading.Lock()

    def signal_at(self, request: int, process: Callable[[], int | None], *signals: int) -> None:
        """Send a process signals as the n-th request from now on comes in."""
        with self._counting:
            self._waited = (self.requests + request, process, signals)

    def forget(self) -> None:
        """Send no signal."""
        with self._counting:
            self._waited = None

    def reply(self, body: bytes) -> bytes:
        """Return the reply to a request, after the mind's latency."""
        with self._counting:
            self.requests += 1
            if self._waited is not None and self.requests == self._waited[0] and (pid := self._waited[1]()):
                for one in self._waited[2]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, one)
        asked = read_request(body)
        if (words := _own_words(asked.messages[-1].text)) is not None:
            choice = {"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
            whole = {"object": "chat.completion", "model": asked.model, "choices": [choice]}
            tokens = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
            return json.dumps(whole | {"usage": USAGES[self.usage](tokens)}).encode()
        responses = [SimulatedEngine(self.mind).reply_to(asked.request()) for _ in range(max(asked.n, self.choices))]
        time.sleep(self.mind.traits.latency)
        whole = chat_completion(asked.model, responses)
        return json.dumps(whole | {"usage": USAGES[self.usage](whole["usage"])}).encode()


def _own_words(said: str) -> str | None:
    """Return the reply to what the simulated LM cannot do: write claims, read passages of `money`; else None."""
    if "## texts ##" in said:
        return '[[ ## texts ## ]]\n["One.", "Two."]\n\n[[ ## completed ## ]]'
    if read := re.search(r"The river of (Town \d+) is the (River \d+)", said):
        span = read[2] if f"through {read[1]}?" in said else ""
        return f"[[ ## span ## ]]\n{span}\n\n[[ ## confidence ## ]]\n{0.9 if span else 0.1}\n\n[[ ## completed ## ]]"
    return None


@contextmanager
def till(mind: Mind) -> Iterator[Till]:
    """Run the server on a free port of loopback, each connection on a thread."""
    counted = Till(mind)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = counted.reply(self.rfile.read(int(self.headers["Content-Length"])))
            with suppress(OSError):  # the client was killed
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *said: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *broken: Any) -> None:
            """A killed client's connection breaks."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    counted.address = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield counted
    finally:
        server.shutdown()
        server.server_close()
