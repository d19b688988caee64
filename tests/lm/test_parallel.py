"""Independent calls at the same time: order, context, trace and failure."""

import asyncio
import threading
from contextvars import ContextVar
from functools import partial

import dspy
import pytest
from answering import Gate

from questree.common.event_loop import run
from questree.lm.call import call
from questree.lm.episode import episode
from questree.lm.failure import CallFailedError
from questree.lm.parallel import run_parallel, within


def test_results_come_in_the_order_of_the_tasks():
    second_is_done = threading.Event()

    def first() -> str:
        assert second_is_done.wait(20)
        return "first"

    def second() -> str:
        second_is_done.set()
        return "second"

    assert run_parallel([first, second]) == ["first", "second"]


def test_tasks_are_in_flight_together():
    barrier = threading.Barrier(20)
    assert len(run_parallel([partial(barrier.wait, 20)] * 20)) == 20


def test_each_task_has_the_callers_context_to_itself():
    here: ContextVar[int] = ContextVar("here", default=0)
    here.set(1)

    def task(n: int) -> int:
        found = here.get()
        here.set(n)
        return found

    assert run_parallel([partial(task, 5), partial(task, 6)]) == [1, 1]
    assert here.get() == 1


def test_calls_reach_the_lm_and_the_episode_of_the_caller(answering):
    answering(lambda asked: {"answer": asked.given("question")})
    ask = dspy.Predict("question -> answer")
    with episode() as kept:
        replies = run_parallel([partial(call, ask, question=f"q{n}") for n in range(3)])
    assert [reply.answer for reply in replies] == ["q0", "q1", "q2"]
    assert kept.spent.calls == 3


def test_the_trace_is_in_the_order_of_the_tasks_whichever_ends_first(answering):
    gate = Gate()

    def reply(asked):
        if asked.given("question") == "q2":
            gate.opened.set()
        return {"answer": "x"}

    answering(reply, meet=lambda asked: gate if asked.given("question") == "q0" else None)
    ask = dspy.Predict("question -> answer")
    with dspy.context(trace=[]):
        ask(question="before")
        run_parallel([partial(ask, question=f"q{n}") for n in range(3)])
        assert [given["question"] for _, given, _ in dspy.settings.trace] == ["before", "q0", "q1", "q2"]


def test_a_trace_that_is_off_stays_off(answering):
    answering(lambda asked: {"answer": "x"})
    with dspy.context(trace=None):
        run_parallel([partial(dspy.Predict("question -> answer"), question="q")] * 2)
        assert dspy.settings.trace is None


def test_the_trace_keeps_to_its_size(answering):
    answering(lambda asked: {"answer": "x"})
    with dspy.context(trace=[], max_trace_size=3):
        run_parallel([partial(dspy.Predict("question -> answer"), question=f"q{n}") for n in range(5)])
        assert [given["question"] for _, given, _ in dspy.settings.trace] == ["q2", "q3", "q4"]


def test_the_first_failure_in_order_is_the_one_that_is_raised():
    second_has_failed = threading.Event()

    def first() -> None:
        assert second_has_failed.wait(20)
        raise CallFailedError("timeout", "first")

    def second() -> None:
        second_has_failed.set()
        raise CallFailedError("auth", "second")

    with pytest.raises(CallFailedError, match="first"):
        run_parallel([first, second])


def test_plain_calls_on_an_event_loop_do_not_wait_for_each_other():
    together_there = threading.Barrier(60)

    async def ask() -> list[int]:
        def meet() -> int:
            return within(20, lambda: together_there.wait(20))

        return await asyncio.gather(*(run(meet) for _ in range(60)))

    assert sorted(asyncio.run(ask())) == [*range(60)]
