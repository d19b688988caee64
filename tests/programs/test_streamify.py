"""Under `dspy.streamify`, what an LM behind an address writes arrives as it is written, whichever thread asks."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from dspy.streaming import StreamListener, StreamResponse
from tiny_world import QUESTIONS, RIVER, TitleRetriever

from questree.programs import build
from questree.simulate import Mind, SimulatedEngine, Traits, World
from questree.simulate.server import running_lm


@pytest.fixture(scope="module")
def engine() -> SimulatedEngine:
    return SimulatedEngine(Mind(World(QUESTIONS), Traits(knows=0.5, plans=0.6, malformed=0)))


@pytest.fixture(scope="module")
def api_base(engine: SimulatedEngine) -> Iterator[str]:
    with running_lm(engine) as base:
        yield base


@pytest.fixture(autouse=True)
def lm(api_base: str) -> Iterator[dspy.LM]:
    """An LM behind an address."""
    lm = dspy.LM("openai/simulated", api_base=api_base, api_key="x", cache=False)
    with dspy.context(lm=lm, adapter=None):
        yield lm


def streamed(program: Any, **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [value async for value in dspy.streamify(program, **options)(question=RIVER.question)]

    return asyncio.run(collect())


@pytest.mark.parametrize("name", ["searchain", "blendfilter", "tree-of-reviews", "tree-of-thought"])
def test_a_streamed_program_answers_as_it_does_alone(name):
    program = build(name, {}, retriever=TitleRetriever())
    alone = program(question=RIVER.question)
    *chunks, prediction = streamed(program)
    assert (prediction.answer, prediction.failure) == (alone.answer, None)
    assert prediction.spent == alone.spent
    assert len(chunks) > 20


def test_a_listener_hears_the_words_of_a_field():
    program = build("cot", {})
    *heard, prediction = streamed(program, stream_listeners=[StreamListener("final_content")])
    assert sum(isinstance(one, StreamResponse) for one in heard) > 3
    assert prediction.failure is None


def test_a_stream_can_be_read_without_an_event_loop():
    program = dspy.streamify(build("direct", {}), async_streaming=False)
    *chunks, prediction = program(question=RIVER.question)
    assert chunks
    assert prediction.failure is None


def test_a_stream_that_nobody_reads_any_more_asks_nothing_more(engine, monkeypatch):
    asked: list[Any] = []
    reply_to = engine.reply_to
    monkeypatch.setattr(engine, "reply_to", lambda request: asked.append(request) or reply_to(request))
    ended = threading.Event()

    class Ends(dspy.Module):
        """Says when its program has ended."""

        def __init__(self) -> None:
            super().__init__()
            self.program = build("searchain", {}, retriever=TitleRetriever())

        def forward(self, question: str) -> dspy.Prediction:
            try:
                return self.program(question=question)
            finally:
                ended.set()

    async def leave_at_once() -> None:
        stream = dspy.streamify(Ends())(question=RIVER.question)
        async for _ in stream:
            break
        await stream.aclose()

    async def stay_until_the_end() -> bool:
        await asyncio.wait([asyncio.ensure_future(leave_at_once())])  # DSPy cancels the task that leaves
        return await asyncio.to_thread(ended.wait, 20)

    assert asyncio.run(stay_until_the_end())
    assert len(asked) <= 1


def test_on_a_thread_of_the_user_s_own_a_program_answers_and_nothing_is_sent():
    class Several(dspy.Module):
        """Asks a program on DSPy's own threads."""

        def __init__(self) -> None:
            super().__init__()
            self.program = build("direct", {})

        def forward(self, question: str) -> dspy.Prediction:
            one, two = dspy.Parallel(num_threads=2)([(self.program, {"question": question})] * 2)
            return dspy.Prediction(failures=[one.failure, two.failure])

    assert streamed(Several())[-1].failures == [None, None]
