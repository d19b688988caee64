"""A service over the tiny world, whose LM replies when the test lets it."""

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart
from fastapi.testclient import TestClient
from tiny_world import QUESTIONS, SURE, TitleRetriever

from questree.programs import build
from questree.retrieval.serving.listener import running
from questree.service import KeptQuestions, Service, ServiceLimits, create_app
from questree.simulate import SimulatedEngine, Traits, simulated_lm
from questree.simulate.engine import word_events
from questree.simulate.prompt import read_prompt


class Tap:
    """An asynchronous engine that counts its requests, and replies to so many of them as were let through."""

    def __init__(self, engine: SimulatedEngine):
        self.engine, self.asked = engine, 0
        self._may, self._changed, self.writes = 0, threading.Condition(), threading.Event()
        self.writes.set()
        self._held: list[tuple[int, Callable[[], Any]]] = []

    async def complete(self, request: Request) -> Response:
        loop, through = asyncio.get_running_loop(), asyncio.Event()
        with self._changed:
            self.asked += 1
            self._held.append((self.asked, partial(loop.call_soon_threadsafe, through.set)))
            self._changed.notify_all()
        self.let(self._may)
        await through.wait()
        return self.engine.reply_to(request)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the reply in words; three quarters on, wait until it may be written on (``writes``)."""
        events = list(word_events(await self.complete(request)))
        for place, event in enumerate(events):
            if place == 3 * len(events) // 4:
                await asyncio.to_thread(self.writes.wait, 30)
            yield event

    def let(self, number: int) -> None:
        """Let the first so many requests be replied to."""
        with self._changed:
            self._may = number
            going = [go for place, go in self._held if place <= number]
            self._held = [held for held in self._held if held[0] > number]
        for go in going:
            with suppress(RuntimeError):  # its loop has ended
                go()

    def wait_for(self, number: int) -> None:
        """Wait until so many requests have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.asked >= number, timeout=30)


@pytest.fixture
def tap() -> Tap:
    """The LM's tap, closed."""
    return Tap(simulated_lm(QUESTIONS, SURE).engine)


@pytest.fixture
def make_service(tmp_path: Path, tap: Tap, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Service]:
    """Make a service of SearChain and Tree of Reviews; the arguments are its limits."""
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))

    def make(traits: Traits = SURE, **limits: Any) -> Service:
        tap.engine = simulated_lm(QUESTIONS, traits).engine
        lm = dspy.LM("simulated/tap", engine=tap.engine, async_engine=tap, cache=False, num_retries=0)
        names = ("searchain", "tree-of-reviews")
        programs = {name: build(name, {}, retriever=TitleRetriever()) for name in names}
        return Service(programs, KeptQuestions(tmp_path / "kept"), ServiceLimits(**limits), lm=lm)

    return make


@pytest.fixture
def visit() -> Iterator[Callable[..., TestClient]]:
    """Give a client of a service's application; the other arguments are those of `create_app`."""
    with ExitStack() as opened:
        yield lambda service, token=None, *, host="localhost", **how: opened.enter_context(
            TestClient(create_app(service, token, **how), base_url=f"http://{host}")
        )


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Run a service's application until the test ends, and give its address."""
    with ExitStack() as opened:
        yield lambda service, token=None, *, behind_proxy=False, **how: opened.enter_context(
            running(create_app(service, token, **how), ending=service.close, behind_proxy=behind_proxy)
        )


@pytest.fixture
def client(make_service: Callable[..., Service], tap: Tap, visit: Callable[..., TestClient]) -> TestClient:
    """A client of a service whose LM replies at once."""
    tap.let(10**6)
    return visit(make_service())


@pytest.fixture
def restating(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Let the LM of a service that is there restate every follow-up so; gives the prompts in which it is asked to."""

    def restate(whole: str) -> list[str]:
        shown, reply_to = list[str](), tap.engine.reply_to

        def reply(request: Request) -> Response:
            text = read_prompt(request).text
            if "restated" not in text:
                return reply_to(request)
            shown.append(text)
            said = Message.assistant([TextPart(f"[[ ## restated ## ]]\n{whole}")])
            return dataclasses.replace(reply_to(request), message=said)

        monkeypatch.setattr(tap.engine, "reply_to", reply)
        return shown

    return restate
