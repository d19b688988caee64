"""200 questions at once from 50 clients: how soon the first node comes, and whether the page still answers.

The server runs in a process of its own, with a simulated LM of half a second a reply. Each client has an address of its
own (127.0.0.1 to 127.0.0.50). Prints a table for docs/serving.md: ``python benchmarks/serving.py``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

QUESTION = "Which river reaches the sea in the city where the author of Ulysses was born?"


@dataclass
class Outcome:
    """What a client saw of one question: seconds to the first node, from when it began, and to the end."""

    first_node: float
    from_turn: float
    done: float
    answered: bool


async def ask(client: httpx.AsyncClient, program: str) -> Outcome:
    """Ask, and read the events to the end."""
    asked = time.perf_counter()
    turn = first = 0.0
    state = "lost"
    body = {"question": QUESTION, "program": program}
    async with client.stream("POST", "/ask", json=body, headers={"Accept": "text/event-stream"}) as events:
        async for line in events.aiter_lines():
            now = time.perf_counter() - asked
            if line == "event: call begun":
                turn = turn or now
            elif line == "event: node grown":
                first = first or now
            elif line == "event: done":
                state = "done"
            elif line.startswith("data:") and state == "done":
                state = json.loads(line[6:])["state"]
    return Outcome(first, first - turn, time.perf_counter() - asked, state == "answered")


async def load(address: str, program: str, clients: int, each: int) -> tuple[list[Outcome], list[float]]:
    """Return what became of the questions, and the seconds of each page that was loaded meanwhile."""
    pages: list[float] = []
    limits = httpx.Limits(max_connections=None)
    opened = [
        httpx.AsyncClient(
            base_url=address,
            timeout=120,
            transport=httpx.AsyncHTTPTransport(local_address=f"127.0.0.{1 + number}", limits=limits),
        )
        for number in range(clients + 1)
    ]
    *askers, reader = opened

    async def look() -> None:
        while True:
            began = time.perf_counter()
            (await reader.get("/")).raise_for_status()
            pages.append(time.perf_counter() - began)

    looking = asyncio.create_task(look())
    outcomes = await asyncio.gather(*(ask(client, program) for client in askers for _ in range(each)))
    looking.cancel()
    for client in opened:
        await client.aclose()
    return list(outcomes), pages


def serve(program: str, latency: float, running: int) -> None:
    """Run the server, and print its address."""
    import dspy

    from questree.data import MINI_CORPUS, load_task
    from questree.programs import build
    from questree.retrieval import BM25Retriever, read_corpus
    from questree.retrieval.serving.listener import serve as listen
    from questree.service import KeptQuestions, Service, ServiceLimits, create_app
    from questree.simulate import Traits, simulated_lm

    questions = [one for split in load_task("mini").questions.values() for one in split]
    retriever = BM25Retriever.from_passages(read_corpus(MINI_CORPUS))
    lm = simulated_lm(questions, Traits(latency=latency, malformed=0), cache=False)
    dspy.configure(lm=lm)
    with tempfile.TemporaryDirectory() as folder:
        kept = KeptQuestions(Path(folder))
        service = Service({program: build(program, {}, retriever=retriever)}, kept, ServiceLimits(running=running))
        listen(create_app(service), "127.0.0.1", 0, ready=lambda address: print(address, flush=True))


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--running", type=int, default=256)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--serve", action="store_true", help="be the server")
    given = parser.parse_args()
    if given.serve:
        serve(given.program, given.latency, given.running)
        return
    own = ["--program", given.program, "--latency", str(given.latency), "--running", str(given.running)]
    command = [sys.executable, __file__, "--serve", *own]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        asyncio.run(load(address, given.program, 2, 1))  # the first question of a process loads libraries
        outcomes, pages = asyncio.run(load(address, given.program, given.clients, given.each))
        server.terminate()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    lost = sum(not one.answered for one in outcomes)
    print(f"{len(outcomes)} questions from {given.clients} clients, LM {given.latency} s, {given.running} at a time")
    print(f"| lost | {lost} |")
    for name, values in {
        "first node": [one.first_node for one in outcomes],
        "first node, from the turn": [one.from_turn for one in outcomes],
        "answer": [one.done for one in outcomes],
        f"page loaded meanwhile ({len(pages)} times)": pages,
    }.items():
        ordered = sorted(values)
        median, late = ordered[len(ordered) // 2], ordered[int(0.95 * (len(ordered) - 1))]
        print(f"| {name}, seconds: median, 95th of 100, longest | {median:.2f}, {late:.2f}, {ordered[-1]:.2f} |")
    print(f"| seconds of processor time of the server | {spent.ru_utime + spent.ru_stime:.1f} |")


if __name__ == "__main__":
    main()
