"""What was found is kept, whatever becomes of the question, in one order for every program."""

import threading
from typing import Any

import dspy
import pytest
from answering import TableRetriever
from dspy import lm15
from dspy.lm15 import Request, Response
from fakes import FunctionEngine
from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import mini as mini

from questree import program
from questree.evaluation.records import record_answer
from questree.evaluation.run import evaluate
from questree.lm.failure import counting_failures
from questree.lm.parallel import run_parallel
from questree.metrics import ranked
from questree.programs import PROGRAMS, Program, answered
from questree.retrieval import Passage

A, B, C, D, E = (Passage(id=letter, text=letter) for letter in "abcde")


def test_kept_ones_come_first_then_the_rank_then_the_earlier_search():
    searches = [[A, B, C], [D, B, A], [C]]
    assert ranked([], searches) == [A, D, C, B]
    assert ranked([B, C], searches) == [C, B, A, D]
    assert ranked([B, E], searches) == [B, E, A, D, C]
    assert ranked([], []) == []


def asked(name: str, mini: Any, most: float) -> tuple[dspy.Prediction, set[str], int]:
    """The prediction of a question whose LM stops after so many calls, the ids of all that was found, the calls."""
    found, sent, engine = set[str](), list[Request](), dspy.settings.lm.engine

    def search(query: str, k: int) -> list[Passage]:
        passages = mini.index(query, k)
        found.update(passage.id for passage in passages)
        return passages

    def give(request: Request) -> Response:
        if len(sent) >= most:
            raise lm15.AuthError("no credit left")
        sent.append(request)
        return engine.complete(request)

    lm = dspy.LM("simulated/stops", engine=FunctionEngine(give), cache=False, num_retries=0)
    with dspy.context(lm=lm), counting_failures():
        return program(name, retriever=search)(**mini.dev[0].inputs()), found, len(sent)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_question_that_fails_keeps_what_was_found_before(name, mini):
    whole, found, calls = asked(name, mini, most=1000)
    assert whole.failure is None
    assert {passage.id for passage in whole.seen} == found
    for stop in {0, calls - 1}:
        prediction, found, _ = asked(name, mini, most=stop)
        assert prediction.failure.cause == "auth"
        assert (prediction.answer, prediction.references, prediction.spent.calls) == ("", [], stop)
        assert {passage.id for passage in prediction.seen} == found
        record, gold = record_answer(mini.dev[0], prediction), set(mini.dev[0].gold_passages)
        assert record.retrieval["recall@all"] == len(found & gold) / len(gold)
        assert record.prediction.seen == prediction.seen


def test_the_order_is_that_of_asking_whichever_search_is_the_fastest():
    second_is_done = threading.Event()

    class Slow(TableRetriever):
        def __call__(self, query, k=1):
            if query == "first":
                assert second_is_done.wait(20)
            return super().__call__(query, k)

    class Searches(Program):
        name = "searches"

        def reason(self, tree, answer_style):
            def second():
                self.retrieve("second", k=1)
                self.retrieve("third", k=1)
                second_is_done.set()

            run_parallel([lambda: self.retrieve("first", k=1), second])
            self.retrieve("fourth", k=1)
            return answered(tree, "", "", [])

    found = {"first": "a", "second": "b", "third": "c", "fourth": "d"}
    prediction = Searches(Slow(found))(question="?")
    assert [passage.id for passage in prediction.seen] == ["a", "b", "c", "d"]


def test_a_program_that_goes_wrong_keeps_what_was_found_and_spent(mini):
    class Breaks(Program):
        name = "breaks"

        def reason(self, tree, answer_style):
            self.retrieve(tree.question, k=4)
            if tree.question == mini.dev[0].question:
                raise ZeroDivisionError("oh")
            return answered(tree, "", "", [])

    record, _ = evaluate(Breaks(mini.index, mini.program().settings), mini.dev[:2], mini.metric).records
    assert record.failure.cause == "error"
    assert len(record.seen) == len(record.passages) == 4
    assert all(passage.text for passage in record.prediction.seen)
