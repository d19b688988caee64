"""A question as a stream of events, read with `for`, with `async for`, late, by many, and by nobody any more."""

import asyncio
import json
import threading
from collections.abc import Iterator

import dspy
import pytest
from dspy.utils.exceptions import LMAuthError
from tiny_world import QUESTIONS, RIVER, SURE, TitleRetriever

import questree
from questree.lm.failure import counting_failures
from questree.lm.progress import ProgressMessage
from questree.programs import ReasoningTree, build
from questree.simulate import simulated_lm


@pytest.fixture(autouse=True)
def lm() -> Iterator[dspy.LM]:
    """An LM that knows the four questions."""
    lm = simulated_lm(QUESTIONS, SURE, cache=False)
    with dspy.context(lm=lm, adapter=None):
        yield lm


def of(kind, events):
    return [event for event in events if event.kind == kind]


def test_a_name_is_no_program():
    with pytest.raises(TypeError, match=r"questree\.program\('searchain'\), and not 'searchain'"):
        questree.stream("searchain", RIVER.question)


@pytest.mark.parametrize("name", ["searchain", "blendfilter", "tree-of-reviews", "self-consistency"])
def test_the_events_of_a_question_are_its_tree_its_calls_and_its_prediction(name):
    program = build(name, {}, retriever=TitleRetriever())
    *events, done = questree.stream(program, RIVER.question)
    alone = program(question=RIVER.question)
    assert done.prediction.answer == alone.answer
    tree = ReasoningTree(question=RIVER.question)
    for event in events:
        if event.kind == "node_grown":
            assert event.node.id == len(tree.nodes)
            tree.nodes.append(event.node)
        elif event.kind == "node_changed":
            tree.nodes[event.node.id] = event.node
    assert tree == done.prediction.tree
    begun, ended = of("call_begun", events), of("call_ended", events)
    assert sorted(one.call for one in begun) == sorted(one.call for one in ended)
    assert sum(one.spent.tokens_in for one in ended) == done.prediction.spent.tokens_in > 0
    assert len(ended) == done.prediction.spent.calls


def test_an_event_loop_reads_the_same_and_many_join_late():
    stream = questree.stream(build("searchain", {}, retriever=TitleRetriever()), RIVER.question)

    async def read() -> list[str]:
        return [event.model_dump_json() async for event in stream]

    async def all_read() -> list[list[str]]:
        return await asyncio.gather(*(read() for _ in range(50)))

    several = asyncio.run(all_read())
    late = [event.model_dump_json() for event in stream]
    assert all(one == late for one in several)
    assert json.loads(late[-1])["prediction"]["answer"] == "Vltava"


def test_a_question_that_nobody_follows_any_more_asks_nothing_more(lm, monkeypatch):
    asked, may_reply = [], threading.Event()
    reply_to = lm.engine.reply_to

    def reply_later(request):
        asked.append(request)
        may_reply.wait(20)
        return reply_to(request)

    monkeypatch.setattr(lm.engine, "reply_to", reply_later)
    stream = questree.stream(build("searchain", {}, retriever=TitleRetriever()), RIVER.question)
    followed = iter(stream)
    assert next(followed).kind == "call_begun"
    followed.close()
    may_reply.set()
    assert list(stream)[-1].prediction.failure.message == "nobody reads the stream any more"
    assert len(asked) == 1


def test_what_a_program_raises_is_raised_to_the_reader():
    class Broken(dspy.Module):
        """A program with a fault."""

        def forward(self, question: str, answer_style: str) -> dspy.Prediction:
            raise KeyError(question)

    with pytest.raises(KeyError, match="Why"):
        list(questree.stream(Broken(), "Why?"))


def test_dspy_s_streams_carry_the_events_as_status_messages():
    program = dspy.streamify(build("searchain", {}, retriever=TitleRetriever()))

    async def read() -> list[object]:
        return [value async for value in program(question=RIVER.question)]

    told = [value for value in asyncio.run(read()) if isinstance(value, ProgressMessage)]
    assert {one.event.kind for one in told} == {"node_grown", "node_changed", "searching", "call_begun", "call_ended"}
    assert any("Franz Kafka" in one.message for one in told)


def test_a_call_that_failed_has_ended_as_well():
    with dspy.context(lm=None), counting_failures():
        *_, done = events = list(questree.stream(build("direct", {}), "Why?"))
    assert done.prediction.failure.cause == "auth"
    assert len(of("call_begun", events)) == len(of("call_ended", events))
    assert done.prediction.spent.calls == 0


def test_a_request_that_failed_is_told_with_its_call(scripted):
    scripted(LMAuthError("no key"))
    with counting_failures():
        *events, done = questree.stream(build("direct", {}), "Why?")
    (ended,) = of("call_ended", events)
    assert ended.spent.failed == done.prediction.spent.failed == 1
