"""A program on an event loop: the same answers as without one, and nothing left behind."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dspy
import pytest
from dspy.lm15 import Request, Response
from tiny_world import QUESTIONS, RIVER, SURE, TitleRetriever

from questree.common.event_loop import awaited, run
from questree.lm.episode import episode
from questree.lm.failure import CallFailedError, CannotAskError
from questree.lm.limits import Limits, limited
from questree.lm.parallel import run_parallel
from questree.programs import PROGRAMS, Program, build
from questree.retrieval import Passage
from questree.simulate import SimulatedEngine, Traits, simulated_lm
from questree.simulate.server import running_lm

MIXED = SURE.model_copy(update={"knows": 0.5, "plans": 0.6, "malformed": 0.2})


@pytest.fixture(autouse=True)
def lm() -> Iterator[dspy.LM]:
    with dspy.context(lm=simulated(MIXED), adapter=None):
        yield dspy.settings.lm


def simulated(traits: Traits) -> dspy.LM:
    return simulated_lm(QUESTIONS, traits, cache=False)


def told(prediction: dspy.Prediction) -> dict[str, Any]:
    """All that a prediction says, but how long it took."""
    return {name: value for name, value in prediction.items() if name not in ("seconds", "tree")} | {
        "tree": prediction.tree.model_dump_json()
    }


async def at_once(program: Program) -> list[dspy.Prediction]:
    return await asyncio.gather(*(program.acall(question=one.question) for one in QUESTIONS[:2]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_answers_as_it_does_without_an_event_loop(name):
    program = build(name, {}, retriever=TitleRetriever())
    alone = [told(program(question=one.question)) for one in QUESTIONS[:2]]
    with dspy.context(lm=simulated(MIXED)):  # one that has not yet been asked
        assert [told(one) for one in asyncio.run(at_once(program))] == alone


class Hanging:
    """An engine that tells each request, and never replies."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.came = asyncio.Event()

    async def complete(self, request: Request) -> Response:
        self.asked.append(request)
        self.came.set()
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("name", ["searchain", "tree-of-reviews", "self-consistency", "react"])
def test_a_cancelled_question_asks_nothing_more_and_leaves_nothing_behind(name, lm):
    program, threads = build(name, {}, retriever=TitleRetriever()), set(threading.enumerate())

    async def cancelled() -> list[Request]:
        engine = Hanging()
        with dspy.context(lm=lm.copy(engine=lm.engine, async_engine=engine)):
            question = asyncio.create_task(program.acall(question=RIVER.question))
        await engine.came.wait()
        await asyncio.sleep(0)
        asked = list(engine.asked)
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return engine.asked[len(asked) :]

    assert asyncio.run(cancelled()) == []
    for thread in set(threading.enumerate()) - threads:
        thread.join(20)  # one that ends by itself may take a moment
    assert set(threading.enumerate()) <= threads


def test_a_hundred_questions_wait_at_the_same_time_without_a_thread_for_each():
    lm, program = simulated(SURE), build("direct", {}, retriever=TitleRetriever())

    class Meeting(Hanging):
        async def complete(self, request: Request) -> Response:
            self.asked.append(request)
            if len(self.asked) == 100:
                self.came.set()
            await self.came.wait()
            self.threads = threading.active_count()
            return lm.engine.reply_to(request)

    async def met() -> tuple[list[dspy.Prediction], int]:
        engine = Meeting()
        with dspy.context(lm=lm.copy(engine=lm.engine, async_engine=engine)):
            answers = await asyncio.gather(*(program.acall(question=f"{n}?") for n in range(100)))
        return answers, engine.threads

    answers, threads = asyncio.run(met())
    assert [one.failure for one in answers] == [None] * 100
    assert threads < threading.active_count() + 50


def test_sibling_calls_overlap_and_the_first_failure_is_raised_after_all_have_ended():
    both = []

    async def meet(n: int) -> None:
        both.append(n)
        while len(both) < 2:
            await asyncio.sleep(0)

    def task(n: int) -> int:
        awaited(meet(n))
        if n:
            raise CallFailedError("server", str(n))
        return n

    with pytest.raises(CallFailedError, match="1"):
        asyncio.run(run(partial(run_parallel, [partial(task, 0), partial(task, 1)])))
    assert sorted(both) == [0, 1]


def test_a_question_has_its_time_on_an_event_loop_as_well():
    silent = SimulatedEngine(simulated(SURE.model_copy(update={"latency": 2.0})).engine.mind)
    with running_lm(silent) as address:
        lm = dspy.LM("openai/simulated", api_base=address, api_key="x", cache=False)
        with dspy.context(lm=lm), limited(Limits(deadline=0.2)):
            prediction = asyncio.run(build("direct", {}).acall(question=RIVER.question))
    assert prediction.failure.cause == "deadline"


def test_an_lm_that_only_replies_without_an_event_loop_is_asked_on_a_thread(answering):
    threads = set()

    def reply(asked: Any) -> dict[str, str]:
        threads.add(threading.current_thread())
        return {"answer": "Vltava", "final_content": "Vltava", "sure": "True"}

    answering(reply)
    prediction = asyncio.run(build("direct", {}).acall(question=RIVER.question))
    assert prediction.answer == "Vltava"
    assert threading.current_thread() not in threads


def test_searches_of_a_slow_retriever_overlap():
    both = threading.Barrier(2)

    def search(query: str, k: int) -> list[Passage]:
        both.wait(20)
        return TitleRetriever()(query, k)

    both_found = asyncio.run(at_once(build("oner", {}, retriever=search)))
    assert [one.failure for one in both_found] == [None, None]


async def test_an_episode_around_several_questions_counts_them_all():
    with episode() as kept:
        several = await at_once(build("direct", {}))
    assert kept.spent.calls == sum(one.spent.calls for one in several) >= 2


def test_a_program_of_another_s_calls_it_as_it_is_called():
    class Around(dspy.Module):
        """A user's module."""

        def __init__(self) -> None:
            super().__init__()
            self.program = build("direct", {})

        async def aforward(self, question: str) -> dspy.Prediction:
            return await self.program.acall(question=question)

    ask: Callable[..., Any] = Around().acall
    assert asyncio.run(ask(question=RIVER.question)).failure is None


def test_two_event_loops_at_the_same_time_and_one_after_another():
    program = build("searchain", {}, retriever=TitleRetriever())

    def ask() -> str:
        return str(asyncio.run(program.acall(question=RIVER.question)).answer)

    with running_lm(SimulatedEngine(simulated(SURE).engine.mind)) as address:
        lm = dspy.LM("openai/simulated", api_base=address, api_key="x", cache=False)
        with dspy.context(lm=lm):
            assert [ask(), ask()] == ["Vltava"] * 2
            assert run_parallel([ask, ask]) == ["Vltava"] * 2


def test_without_an_lm_or_a_retriever_a_call_raises_and_says_why():
    with dspy.context(lm=None), pytest.raises(CannotAskError, match="no LM is configured"):
        asyncio.run(build("direct", {}).acall(question="Why?"))
    with pytest.raises(CannotAskError, match="needs a retriever"):
        asyncio.run(build("oner", {}).acall(question="Why?"))


async def search_later(query: str, k: int) -> list[Passage]:
    return TitleRetriever()(query, k)


def test_a_coroutine_function_where_a_plain_one_is_due_is_refused():
    failure = build("oner", {}, retriever=search_later)(question=RIVER.question).failure
    assert "search_later is a coroutine function" in failure.message

    async def watch(tree: Any) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="watch is a coroutine function"):
        build("direct", {})(question=RIVER.question, watch=watch)
