"""Which passages a reader is tried on, and theta on readings whose answer is known."""

import pytest
from fakes import GivingRetriever

from questree.common.errors import QuestreeError
from questree.data import Question
from questree.data.task import Paragraph
from questree.lm.failure import CallFailedError
from questree.optimize.theta import Pair, Reading, best_theta, pairs_of, read_all, theta_sweep
from questree.retrieval import Passage, Span


def question(n, text=None, more=(), **fields):
    supporting = Paragraph(title=f"T{n}", text=text or f"the answer is a{n}", is_supporting=True)
    asked = {"id": str(n), "task": "nq", "question": f"which {n}?", "answers": (f"a{n}",), "style": "short"}
    return Question(**asked | {"split": "dev", "paragraphs": (*more, supporting)} | fields)


class Marks:
    """Is as sure as the passage says."""

    name, threshold, read_many = "marks", 0.0, None

    def __init__(self, scores):
        self.scores = scores

    def __call__(self, query, passage):
        score = self.scores[passage.id]
        if score is None:
            raise CallFailedError("timeout", "late")
        return Span(text="span" if score else "", score=score)


class ManyMarks(Marks):
    """Wants to be asked for many at once."""

    def __call__(self, query, passage):
        pytest.fail("one by one")

    def read_many(self, pairs):
        return [Marks.__call__(self, *pair) for pair in pairs]


def wrong_of(pairs):
    return [pair.passage.text for pair in pairs if not pair.answers]


def test_each_question_goes_with_its_own_passage_and_one_of_another():
    asked = [question(n) for n in range(20)]
    pairs = pairs_of(asked, seed=3)
    assert [(one.question, one.passage.text) for one in pairs if one.answers] == [
        (one.question, one.paragraphs[0].text) for one in asked
    ]
    wrong = [pair for pair in pairs if not pair.answers]
    assert [pair.question for pair in wrong] == [one.question for one in asked]
    assert all(pair.passage.text != one.paragraphs[0].text for pair, one in zip(wrong, asked, strict=True))
    assert pairs == pairs_of(asked, seed=3) != pairs_of(asked, seed=4)


def test_of_several_supporting_passages_the_one_with_the_answer_is_its_own():
    elsewhere = Paragraph(title="C", text="It supports, but elsewhere.", is_supporting=True)
    pairs = pairs_of([question(1, more=[elsewhere]), question(2)])
    assert pairs[0].passage.text == "the answer is a1"


def test_the_highest_that_is_found_goes_before_a_paragraph_and_another_questions_passage():
    beside = [Paragraph(text="noise that holds a1"), Paragraph(text="beside")]
    asked = [question(1, more=beside), question(2, more=beside)]
    texts = ["the answer is a1", "a1 and a2", "found", "lower"]
    found = GivingRetriever(Passage(id=str(n), text=text) for n, text in enumerate(texts))
    assert wrong_of(pairs_of(asked, found)) == ["found", "the answer is a1"]  # it answers the first, not the second
    assert wrong_of(pairs_of(asked)) == ["beside", "noise that holds a1"]
    expressions = question(3, more=beside, answers=("a[1-3]",), answers_are_regex=True)
    assert wrong_of(pairs_of([expressions])) == ["beside"]


def test_a_passage_that_is_shared_or_holds_the_answer_is_no_negative():
    shared = [question(1, "one text"), question(2, "one text"), question(3, "with a1 and a2 in it")]
    (wrong,) = [pair for pair in pairs_of(shared) if not pair.answers]
    assert (wrong.question, wrong.passage.text) == ("which 3?", "one text")
    with pytest.raises(QuestreeError, match="more questions"):
        pairs_of([question(1)])
    for bare in (question(1, paragraphs=()), question(1, answers=())):
        with pytest.raises(QuestreeError, match="supporting passage"):
            pairs_of([bare])


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


def pairs_on(*ids):
    return [Pair("which?", Passage(id=id, text="t"), True) for id in ids]


def test_no_span_is_no_answer_and_a_failed_call_no_reading():
    done = []
    pairs = pairs_on("0", "1", "2")
    readings, failed = read_all(Marks({"0": 2.0, "1": 0.0, "2": None}), pairs, concurrency=2, on_progress=done.append)
    assert [reading.score for reading in readings] == [2.0, float("-inf")]
    assert failed == 1
    assert done == [1, 2, 3]
    with pytest.raises(QuestreeError, match=r"none of 1 passages .*late"):
        read_all(Marks({"2": None}), pairs[2:])


def test_a_reader_that_reads_many_at_once_is_asked_so():
    readings, failed = read_all(ManyMarks({"0": 2.0, "1": 1.0}), pairs_on(*["0", "1"] * 50))
    assert [reading.score for reading in readings] == [2.0, 1.0] * 50
    assert failed == 0
