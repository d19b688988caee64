"""A run on one event loop gives the records of a run on threads, and stops as it does."""

import signal
import threading
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from tiny_world import QUESTIONS, SURE, TitleRetriever

from questree.evaluation.evaluation import Evaluation
from questree.evaluation.run import Interrupted, evaluate
from questree.evaluation.stored_runs import read_records
from questree.lm.limits import RunPolicy
from questree.metrics import metric
from questree.programs import build
from questree.simulate import Traits, simulated_lm

EXAMPLES = [
    question.model_copy(update={"id": f"{question.id}-{n}"}).to_example() for n in range(10) for question in QUESTIONS
]
MIXED = SURE.model_copy(update={"knows": 0.5, "plans": 0.6, "malformed": 0.05})


@pytest.fixture(autouse=True)
def lm() -> Iterator[None]:
    with dspy.context(lm=simulated(MIXED), adapter=None):
        yield


def simulated(traits: Traits) -> dspy.LM:
    return simulated_lm(QUESTIONS, traits, cache=False)


def records(name: str, **policy: Any) -> list[dict[str, Any]]:
    with dspy.context(lm=simulated(MIXED)):
        program = build(name, {}, retriever=TitleRetriever())
        found = evaluate(program, EXAMPLES[:4], metric("by-style"), policy=RunPolicy(**policy))
    return [record.model_dump(mode="json", exclude={"seconds"}) for record in found.records]


@pytest.mark.parametrize("name", ["searchain", "tree-of-reviews", "self-consistency", "direct"])
def test_the_records_are_the_same_as_on_threads(name):
    assert records(name, event_loop=True, concurrency=4) == records(name, concurrency=4)


def test_no_question_has_a_thread_of_its_own():
    before, most = threading.active_count(), 0

    def look(progress: Any) -> None:
        nonlocal most
        most = max(most, threading.active_count())

    policy = RunPolicy(event_loop=True, concurrency=40)
    evaluate(build("direct", {}), EXAMPLES, metric("by-style"), policy=policy, on_progress=look)
    assert most - before < 20
    assert threading.active_count() <= before


def test_a_metric_that_waits_holds_up_neither_the_questions_nor_another_score():
    both = threading.Barrier(2)

    def waits(example: Any, prediction: Any, trace: Any = None) -> float:
        both.wait(20)
        return 1.0

    found = evaluate(build("direct", {}), EXAMPLES[:4], waits, policy=RunPolicy(event_loop=True))
    assert found.score.mean == 1


@pytest.mark.parametrize("event_loop", [False, True])
def test_ctrl_c_finishes_what_is_on_its_way_and_keeps_it(event_loop, tmp_path):
    def press(progress: Any) -> None:
        if progress.done == 1:
            signal.raise_signal(signal.SIGINT)

    def run(**how: Any) -> Evaluation:
        policy = RunPolicy(event_loop=event_loop, concurrency=2)
        return evaluate(build("direct", {}), EXAMPLES, metric("by-style"), out=tmp_path, policy=policy, **how)

    before, told = threading.active_count(), list[int]()
    with pytest.raises(Interrupted, match="run the same again"):
        run(on_progress=press)
    assert threading.active_count() <= before
    kept = len(read_records(tmp_path))
    assert run(on_progress=lambda progress: told.append(progress.done)).n == len(EXAMPLES)
    assert told == [*range(kept, len(EXAMPLES) + 1)]
