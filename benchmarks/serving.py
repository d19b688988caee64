"""200 questions at once from 50 clients: how soon the first node comes, and whether the page still answers.

The server runs in a process of its own, with a simulated LM of half a second a reply. Each client has an address of its
own (127.0.0.1 to 127.0.0.50). Prints a table for docs/serving.md: ``python benchmarks/serving.py``
"""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from frame import QUESTION, begin, bundled_questions, bundled_retriever, options, served

PAUSE = 0.1  # seconds between two loads of the page


@dataclass
class Outcome:
    """What a client saw of one question: seconds to the first node, from when it began, and to the end."""

    first_node: float
    from_turn: float
    done: float
    answered: bool


async def ask(address: str, client: str, program: str) -> Outcome:
    """Ask, and read the events to the end."""
    asked = time.perf_counter()
    turn = first = 0.0
    state = "lost"
    body = json.dumps({"question": QUESTION, "program": program})
    async for line in exchange(address, client, "POST /ask", body):
        now = time.perf_counter() - asked
        if line == b"event: call_begun":
            turn = turn or now
        elif line == b"event: node_grown":
            first = first or now
        elif line == b"event: done":
            state = "done"
        elif line.startswith(b"data:") and state == "done":
            state = json.loads(line[5:])["state"]
    return Outcome(first, first - turn, time.perf_counter() - asked, state == "answered")


async def exchange(address: str, client: str, request: str, body: str = "") -> AsyncIterator[bytes]:
    """Send a request, and yield the lines of the reply.

    A library's client takes as much of the processor as the server does, which would then be counted as the server's.
    """
    host, port = str(urlsplit(address).hostname), urlsplit(address).port
    incoming, outgoing = await asyncio.open_connection(host, port, local_addr=(client, 0), limit=2**20)
    headers = f"Host: {host}:{port}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nConnection: close"
    outgoing.write(f"{request} HTTP/1.1\r\n{headers}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    async for line in incoming:
        yield line.rstrip()
    outgoing.close()


async def load(address: str, program: str, clients: int, each: int) -> tuple[list[Outcome], list[float]]:
    """Return what became of the questions, and the seconds of each page that was loaded meanwhile."""
    pages: list[float] = []

    async def look() -> None:
        while True:
            began = time.perf_counter()
            lines = [line async for line in exchange(address, f"127.0.0.{clients + 1}", "GET /")]
            assert b"200" in lines[0], lines[0]
            pages.append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE)

    looking = asyncio.create_task(look())
    addresses = [f"127.0.0.{1 + number}" for number in range(clients)]
    outcomes = await asyncio.gather(*(ask(address, client, program) for client in addresses for _ in range(each)))
    looking.cancel()
    return list(outcomes), pages


def serve(told: Any, program: str, latency: float, running: int) -> None:
    """Serve a program, and tell the address."""
    import dspy

    from questree.programs import build
    from questree.retrieval.serving.listener import serve_app
    from questree.service import KeptQuestions, Service, ServiceLimits, create_app
    from questree.simulate import Traits, simulated_lm

    dspy.configure(lm=simulated_lm(bundled_questions(), Traits(latency=latency, malformed=0), cache=False))
    with tempfile.TemporaryDirectory() as folder:
        programs = {program: build(program, {}, retriever=bundled_retriever())}
        app = create_app(Service(programs, KeptQuestions(Path(folder)), ServiceLimits(max_running=running)))
        serve_app(app, "127.0.0.1", 0, ready=told.send)


def measure(name: str, latency: float, running: int, clients: int, each: int) -> None:
    """Start a server, ask it, and print a part of the table."""
    with served(serve, name, latency, running) as address:
        asyncio.run(load(address, name, 2, 1))  # the first question of a process loads libraries
        outcomes, pages = asyncio.run(load(address, name, clients, each))
    print(f"| {name}: lost | {sum(not one.answered for one in outcomes)} of {len(outcomes)} |")
    for what, values in {
        "first node": [one.first_node for one in outcomes],
        "first node, from the turn": [one.from_turn for one in outcomes],
        "answer": [one.done for one in outcomes],
        f"page loaded meanwhile ({len(pages)} times)": pages,
    }.items():
        ordered = sorted(values)
        median, late = ordered[len(ordered) // 2], ordered[int(0.95 * (len(ordered) - 1))]
        print(f"| {name}: {what}: median, 95th of 100, longest | {median:.2f}, {late:.2f}, {ordered[-1]:.2f} s |")


def main() -> None:
    """Measure, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--running", type=int, default=256)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--each", type=int, default=4)
    given = begin(parser)
    measure(given.program, given.latency, given.running, given.clients, given.each)


if __name__ == "__main__":
    main()
