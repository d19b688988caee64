"""Sweeps of theta and alpha, on readings and records whose answer is known."""

from __future__ import annotations

import pytest

from questree.data import Question
from questree.data.task import Paragraph
from questree.optimize import Record
from questree.optimize.thresholds import Reading, alpha_sweep, best_theta, passage_pairs, read_all, theta_sweep
from questree.programs import ReasoningTree
from questree.programs.failure import CallFailedError
from questree.retrieval import Passage, Span
from questree.retrieval.errors import QuestreeError


def question(n, text=None, answer=None):
    supporting = Paragraph(title=f"T{n}", text=text or f"the answer is a{n}", is_supporting=True)
    return Question(
        id=str(n), task="nq", question=f"which {n}?", answers=(answer or f"a{n}",), style="short", split="dev",
        paragraphs=(Paragraph(text="noise"), supporting),
    )  # fmt: skip


class Marks:
    """Is as sure as the passage says."""

    name, threshold = "marks", 0.0

    def __init__(self, scores):
        self.scores = scores

    def __call__(self, query, passage):
        score = self.scores[query, passage.id]
        if score is None:
            raise CallFailedError("timeout", "late")
        return Span(text="span" if score else "", score=score)


def test_each_question_goes_with_its_own_passage_and_one_of_another():
    questions = [question(n) for n in range(20)]
    pairs = passage_pairs(questions, seed=3)
    own = [(query, passage.id) for query, passage, answers in pairs if answers]
    assert own == [(one.question, one.id) for one in questions]
    wrong = [(query, passage.id) for query, passage, answers in pairs if not answers]
    assert len(wrong) == 20
    assert not set(own) & set(wrong)
    assert pairs == passage_pairs(questions, seed=3) != passage_pairs(questions, seed=4)


def test_a_passage_that_is_shared_or_holds_the_answer_is_no_negative():
    shared = [question(1, "one text"), question(2, "one text"), question(3, "with a1 and a2 in it")]
    negatives = {(query, p.text) for query, p, answers in passage_pairs(shared) if not answers}
    assert negatives == {("which 3?", "one text")}
    with pytest.raises(QuestreeError, match="more questions"):
        passage_pairs([question(1), question(2, "the answer is a1", "a2")][:1])
    with pytest.raises(QuestreeError, match="supporting passage"):
        passage_pairs([question(1).model_copy(update={"paragraphs": ()})])


READINGS = [Reading(3.0, True), Reading(2.0, True), Reading(1.8, False), Reading(1.0, True), Reading(-1.0, False)]


def test_a_passage_answers_where_its_score_is_above_theta():
    at_1_5, at_3 = theta_sweep(READINGS, [1.5, 3.0])
    assert (at_1_5.precision, at_1_5.recall, at_1_5.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert (at_3.precision, at_3.recall, at_3.f1) == (0, 0, 0)


def test_the_best_theta_is_the_one_of_the_highest_f1():
    best = best_theta(READINGS)
    assert best.theta == 0.0  # between -1 and 1
    assert best.f1 == max(point.f1 for point in theta_sweep(READINGS, [n / 10 for n in range(-30, 40)]))
    with pytest.raises(QuestreeError, match="no threshold"):
        best_theta([Reading(float("-inf"), True)])


def test_no_span_is_no_answer_and_a_failed_call_no_reading():
    passages = [Passage(id=str(n), text="t") for n in range(3)]
    pairs = [("q", passage, True) for passage in passages]
    done = []
    reader = Marks({("q", "0"): 2.0, ("q", "1"): 0.0, ("q", "2"): None})
    readings, failed = read_all(reader, pairs, concurrency=2, on_progress=done.append)
    assert readings == [Reading(2.0, True), Reading(float("-inf"), True)]
    assert failed == 1
    assert done == [1, 2, 3]
    with pytest.raises(QuestreeError, match=r"none of 1 passages .*late"):
        read_all(reader, pairs[2:])


def long(id, score, *nodes, replaced=()):
    tree = ReasoningTree(question="q")
    for answer, text in nodes:
        tree.grow(None, query="q", answer=answer, passage=Passage(id=id, text=text), source="lm")
    for answer, text in replaced:
        tree.grow(None, query="q", answer=answer, passage=Passage(id=id, text=text), source="corrected", replaces=0)
    return Record(id=id, question="q", tree=tree, scores={"rouge-l": score})


def test_alpha_tells_nodes_that_disagree_and_how_good_the_others_answers_are():
    records = [
        long("1", 0.4, ("rain falls from clouds", "rain falls from clouds"), replaced=[("x", "y")]),
        long("2", 0.1, ("rain falls from clouds", "rain falls from clouds"), ("the sky", "rain falls from clouds")),
    ]
    low, top = alpha_sweep(records, [0.35, 1.0])
    assert (low.nodes, low.contradicted, low.left_alone) == (3, pytest.approx(1 / 3), 1)
    assert (low.rouge_l_left_alone, low.rouge_l_others) == (0.4, 0.1)
    assert (top.contradicted, top.left_alone, top.rouge_l_left_alone) == (1.0, 0, None)
    with pytest.raises(QuestreeError, match="rouge-l"):
        alpha_sweep([Record(id="1", question="q", scores={"em": 1.0})], [0.3])
