"""Theta on readings whose answer is known, and a reader's scores worked out by hand."""

from dataclasses import replace

import pytest

from questree.common.errors import QuestreeError
from questree.data import Question
from questree.data.task import Paragraph
from questree.lm.failure import CallFailedError
from questree.optimize.readers import (
    Reading,
    best_theta,
    pairs_of,
    plot_theta,
    read_all,
    score_readings,
    theta_sweep,
)
from questree.optimize.readers.examples import examples_of
from questree.optimize.readers.readings import Pair
from questree.optimize.readers.thresholds import relevance_interval
from questree.retrieval import Passage, Span


def question(n, text=None, answer=None):
    supporting = Paragraph(title=f"T{n}", text=text or f"the answer is a{n}", is_supporting=True)
    return Question(
        id=str(n), task="nq", question=f"which {n}?", answers=(answer or f"a{n}",), style="short", split="dev",
        paragraphs=(Paragraph(text=f"noise that holds a{n}"), supporting),
    )  # fmt: skip


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


def test_each_question_goes_with_its_own_passage_and_one_of_another():
    examples = examples_of([question(n) for n in range(20)])
    pairs = pairs_of(examples, seed=3)
    assert [pair.passage for pair in pairs if pair.answers] == [example.passage for example in examples]
    wrong = [pair for pair in pairs if not pair.answers]
    assert [pair.example for pair in wrong] == examples
    assert all(pair.passage.text != pair.example.passage.text for pair in wrong)
    assert pairs == pairs_of(examples, seed=3) != pairs_of(examples, seed=4)


def test_the_first_of_its_negatives_is_taken_before_another_questions_passage():
    examples = examples_of([question(n) for n in range(3)])
    mined = Passage(id="m", text="the highest")
    pairs = pairs_of([replace(one, negatives=(mined, Passage(id="n", text="lower"))) for one in examples])
    assert [pair.passage for pair in pairs if not pair.answers] == [mined] * 3


def test_a_passage_that_is_shared_or_holds_the_answer_is_no_negative():
    shared = [question(1, "one text"), question(2, "one text"), question(3, "with a1 and a2 in it")]
    pairs = pairs_of(examples_of(shared))
    negatives = {(pair.example.question, pair.passage.text) for pair in pairs if not pair.answers}
    assert negatives == {("which 3?", "one text")}
    with pytest.raises(QuestreeError, match="more questions"):
        pairs_of(examples_of([question(1)]))
    with pytest.raises(QuestreeError, match="supporting passage"):
        pairs_of(examples_of([question(1).model_copy(update={"paragraphs": ()})]))


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


def pairs_on(examples, *ids):
    return [Pair(examples[0], Passage(id=id, text="t"), True) for id in ids]


def test_no_span_is_no_answer_and_a_failed_call_no_reading(examples):
    done = []
    pairs = pairs_on(examples, "0", "1", "2")
    readings, failed = read_all(Marks({"0": 2.0, "1": 0.0, "2": None}), pairs, concurrency=2, on_progress=done.append)
    assert [(reading.score, reading.span) for reading in readings] == [(2.0, "span"), (float("-inf"), "")]
    assert failed == 1
    assert done == [1, 2, 3]
    with pytest.raises(QuestreeError, match=r"none of 1 passages .*late"):
        read_all(Marks({"2": None}), pairs[2:])


def test_a_reader_that_reads_many_at_once_is_asked_so(examples):
    pairs = pairs_on(examples, *["0", "1"] * 50)
    readings, failed = read_all(ManyMarks({"0": 2.0, "1": 1.0}), pairs)
    assert [reading.score for reading in readings] == [2.0, 1.0] * 50
    assert failed == 0


def test_the_plot_is_a_picture(tmp_path):
    plot_theta(tmp_path / "theta.png", READINGS, best_theta(READINGS), "five passages")
    assert (tmp_path / "theta.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(QuestreeError, match="cannot be written"):
        plot_theta(tmp_path / "no" / "theta.png", READINGS, best_theta(READINGS), "five passages")


def test_spans_are_scored_on_own_passages_trusted_or_not_and_relevance_at_theta(examples):
    amber, cedar = examples[:2]
    readings = [
        Reading(2.0, True, amber, "the Basin"),  # right but for article and case
        Reading(-1.0, True, cedar, "delta sand"),  # half right, and not trusted
        Reading(3.0, False, amber, "basin"),  # trusted in a passage that does not answer
        Reading(-3.0, False, cedar, "delta"),
    ]
    scores = score_readings(readings, 0.0)
    assert (scores.em.mean, scores.em.n) == (0.5, 2)
    assert scores.span_f1.mean == pytest.approx((1 + 2 / 3) / 2)
    assert scores.relevance_f1.mean == pytest.approx(0.5)  # one right of two taken, of two that answer
    assert scores.figures()["em"] == 0.5
    assert scores.figures()["relevance_f1_high"] == scores.relevance_f1.high


def test_the_interval_of_f1_is_over_questions(examples):
    def readings(copies):
        found = []
        for number, example in enumerate(examples * copies):
            score = -1.0 if number % 4 == 0 else 1.0
            found += [Reading(score, True, example), Reading(-1.0, False, example)]
        return found

    few = relevance_interval(readings(1), 0.0)
    assert few.mean == pytest.approx(12 / 14)
    assert few.low < few.mean < few.high <= 1
    assert few.n == 8
    repeated = relevance_interval(readings(5), 0.0)  # the same eight questions, read five times
    assert (repeated.low, repeated.high, repeated.n) == (few.low, few.high, 8)
    assert relevance_interval([Reading(1.0, True), Reading(-1.0, False)] * 9, 0.0).low == 1
