"""What was found is kept, whatever becomes of the question, in one order for every program."""

import threading

import dspy
import pytest
from answering import TableRetriever
from dspy import lm15
from fakes import ScriptedEngine
from mini_task import WordIndex
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


class Noting(WordIndex):
    """Notes what it found."""

    name = fingerprint = "noting"

    def __init__(self, index: WordIndex):
        self.passages, self.holders, self.found = index.passages, index.holders, index.found
        self.ids: set[str] = set()

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        found = super().__call__(query, k)
        self.ids |= {passage.id for passage in found}
        return found


class StopsAfter(ScriptedEngine):
    """Answers so many calls as another engine does, and turns the others away."""

    def __init__(self, engine, calls: float):
        self.engine, self.left, self.answered = engine, calls, 0

    def complete(self, request):
        if self.left <= 0:
            raise lm15.AuthError("no credit left")
        self.left -= 1
        self.answered += 1
        return self.engine.complete(request)


def asked(name: str, mini, calls: float):
    """The prediction of a question whose LM stops after so many calls, its example, the ids of all that was found."""
    index, engine = Noting(mini.index), StopsAfter(dspy.settings.lm.engine, calls)
    example = mini.dev[0]
    with dspy.context(lm=dspy.LM("simulated/stops", engine=engine, cache=False, num_retries=0)), counting_failures():
        prediction = program(name, retriever=index)(**example.inputs())
    return prediction, example, index.ids, engine.answered


@pytest.mark.parametrize("name", [name for name in PROGRAMS if PROGRAMS[name].searches])
def test_a_question_that_fails_keeps_what_was_found_before(name, mini):
    whole, _, found, calls = asked(name, mini, calls=1000)
    assert whole.failure is None
    assert {passage.id for passage in whole.seen} == found
    for stop in {0, calls - 1}:
        prediction, example, found, _ = asked(name, mini, calls=stop)
        assert prediction.failure.cause == "auth"
        assert {passage.id for passage in prediction.seen} == found
        record = record_answer(example, prediction)
        gold = set(example.gold_passages)
        assert record.retrieval["recall@all"] == len(found & gold) / len(gold)
        told = [(passage.id, passage.text) for passage in record.prediction.seen]
        assert told == [(passage.id, passage.text) for passage in prediction.seen]


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
