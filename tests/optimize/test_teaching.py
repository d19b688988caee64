"""Which calls are demonstrated: each kind in turn, and none that contradicts the gold passages."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest
from steps import last_step, titled

from questree.metrics import metric
from questree.optimize.verdicts import Teaching, Verdicts
from questree.programs import TreeOfReviews
from questree.retrieval import Passage

PROGRAM = TreeOfReviews()


def step(title: str, relevant: bool, supported: bool = False):
    missing = None if supported else "a date"
    reply = {
        "facts": "f [1]",
        "last_adds": relevant,
        "missing": missing,
        "supported_answer": "x" if supported else None,
    }
    asked = {"question": "q", "answer_style": "short", "passages": titled([title]), "tried": []}
    reply |= {"next_query": None if missing is None else "When?", "guess": None}
    return last_step(PROGRAM.paragraph_review, reply, **asked)


REJECTS, SEARCHES, ACCEPTS = step("Other", False), step("Gold", True), step("Gold", True, True)
FUSES = last_step(
    PROGRAM.evidence_fusion,
    {"final_content": "So.", "answer": "x"},
    question="q",
    answer_style="short",
    evidence=[],
    passages=[],
)
EXAMPLE = dspy.Example(question="q", gold_titles=["Gold"])


@pytest.fixture
def teaching() -> Teaching:
    return Teaching()


def test_questions_in_turn_show_each_kind_of_review(teaching):
    shown = []
    for _ in range(3):
        trace = [REJECTS, REJECTS, SEARCHES, ACCEPTS, FUSES]
        teaching.leave_the_best(trace, EXAMPLE)
        assert [predictor for predictor, *_ in trace] == [PROGRAM.paragraph_review.review, PROGRAM.evidence_fusion.fuse]
        shown.append(trace[0])
    assert shown == [REJECTS, SEARCHES, ACCEPTS]


def test_a_review_that_contradicts_the_gold_passages_is_never_shown(teaching):
    trace = [step("Gold", False), step("Other", True), FUSES]
    teaching.leave_the_best(trace, EXAMPLE)
    assert trace == [FUSES]


def test_only_a_good_prediction_teaches(teaching):
    trace = [REJECTS, ACCEPTS]
    verdicts = Verdicts(lambda example, prediction, trace: prediction.answer == "right", teaching)
    assert not verdicts(EXAMPLE, dspy.Prediction(answer="wrong"), trace)
    assert len(trace) == 2
    assert verdicts(EXAMPLE, dspy.Prediction(answer="right"), trace)
    assert trace == [REJECTS]


@pytest.mark.parametrize("name", ["support-f1", "sp-f1", "answer-recall", "em"])
def test_a_step_that_answers_is_shown_whatever_the_metric_reads(name, teaching):
    told = {"title": "Gold", "text": "x", "sentences": ["x"], "supporting": [0]}
    gold = {"gold_titles": ["Gold"], "gold_sentences": [told]}
    example = dspy.Example(question="q", answers=["x"], **gold)
    found = [Passage(id="1", title="Gold", text="x")]
    right = dspy.Prediction(answer="x", final_content="So [1].", references=found, seen=found, failure=None)
    trace = [ACCEPTS, FUSES]
    Verdicts(replace(metric(name), grade=lambda graded, gold: 1.0), teaching)(example, right, trace)
    assert trace == [ACCEPTS, FUSES]


def test_gepa_reflects_on_the_whole_trace(teaching):
    trace = [REJECTS, ACCEPTS]
    verdicts = Verdicts(lambda example, prediction, trace: True, teaching)
    verdicts.with_feedback(dspy.Example(question="q", answers=["x"]), dspy.Prediction(answer="x"), trace)
    assert trace == [REJECTS, ACCEPTS]
