"""A majority of compiled programs is one question: one deadline, one episode, one tree."""

import pytest
from fakes import ListRetriever
from parrot import NoSettings

import questree
from questree.lm import limits
from questree.lm.episode import Dropped, begin_step, end_step
from questree.lm.failure import CallFailedError
from questree.lm.limits import Limits, check_deadline, limited
from questree.lm.spent import Spent
from questree.programs import Program
from questree.programs.composed import Majority
from questree.programs.program import answered


class Says(Program):
    """Searches, asks twice, and gives one answer; fails where it has none."""

    name = "says"

    def __init__(self, answer: str | None, clock: list[float] | None = None):
        super().__init__(ListRetriever({"Bonn": "On the Rhine.", "Prague": "On the Vltava."}), NoSettings())
        self.answer, self.clock = answer, clock

    def reason(self, tree, answer_style):
        if self.clock:
            check_deadline("it begins")
            self.clock[0] += 0.8
        asked, _ = begin_step("request", "Says", {})
        end_step(asked, spent=Spent(calls=2), dropped=(Dropped(call=str(self.answer)),))
        tree.grow(None, query=str(self.answer), found=tuple(self.retrieve(str(self.answer), 1)))
        if self.answer is None:
            raise CallFailedError("timeout", "late")
        return answered(tree, self.answer, "", [])


def test_a_majority_ignores_failures_and_letter_case_and_adds_up_what_was_spent():
    chosen = Majority([Says(None), Says("Prague"), Says("Bonn"), Says("the prague.")])(question="?")
    assert (chosen.answer, chosen.failure) == ("Prague", None)
    assert chosen.spent.calls == 8
    assert chosen.votes == ["", "Prague", "Bonn", "the prague."]
    assert Majority([Says(None), Says(None)])(question="?").failure.cause == "timeout"
    assert Majority([Says(""), Says(""), Says("Bonn")])(question="?").answer == "Bonn"
    assert Majority([Says(None), Says("")])(question="?").failure is None


def test_what_any_member_saw_and_left_out_was_seen_and_left_out():
    chosen = Majority([Says("Bonn"), Says("Prague"), Says("Prague")])(question="?")
    assert [passage.id for passage in chosen.seen] == ["p1", "p0"], "that of the answer first"
    assert [one.call for one in chosen.dropped] == ["Bonn", "Prague", "Prague"]


def test_the_time_of_a_question_is_that_of_all_members_together(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(limits, "clock", lambda: now[0])
    with limited(Limits(deadline=1)):
        chosen = Majority([Says(answer, now) for answer in ("a", "b", "b", "b")])(question="?")
    assert now[0] == pytest.approx(101.6)
    assert chosen.votes == ["a", "", "", ""], "the second was not done in time"
    assert chosen.answer == "a"


def test_a_stream_of_a_majority_tells_one_tree_that_of_its_prediction():
    *events, done = questree.stream(Majority([Says("Bonn"), Says("Prague"), Says("Prague")]), "?")
    grown = [event.node for event in events if event.kind == "node_grown"]
    assert grown == done.prediction.tree.nodes
    assert [node.query for node in grown] == ["Prague"]
