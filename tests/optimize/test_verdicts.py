"""Scores and verdicts of a metric, and which calls are demonstrated: each kind in turn, none against the gold."""

from dataclasses import replace

import dspy
import pytest
from steps import last_step, titled

from questree.lm.failure import Failure
from questree.metrics import metric
from questree.optimize.verdicts import MetricFaultError, Verdicts
from questree.programs import TreeOfReviews
from questree.retrieval import Passage

PROGRAM = TreeOfReviews()


def step(title: str, relevant: bool, supported: bool = False):
    reply = {"facts": "f [1]", "last_adds": relevant, "supported_answer": "x" if supported else None}
    asked = {"question": "q", "answer_style": "short", "passages": titled([title]), "tried": []}
    reply |= {"next_query": None if supported else "When?", "guess": None}
    return last_step(PROGRAM.paragraph_review, reply, **asked)


REJECTS, SEARCHES, ACCEPTS = step("Other", False), step("Gold", True), step("Gold", True, True)
FUSES = last_step(
    PROGRAM.evidence_fusion,
    {"final_content": "So.", "answer": "x", "sure": True},
    question="q",
    answer_style="short",
    evidence=[],
    passages=[],
)
EXAMPLE = dspy.Example(question="q", gold_titles=["Gold"])


@pytest.fixture
def verdicts() -> Verdicts:
    return Verdicts(lambda example, prediction, trace: prediction.answer in ("right", "x"))


RIGHT = dspy.Prediction(answer="x")


def test_questions_in_turn_show_each_kind_of_review_and_none_that_contradicts_the_gold_passages(verdicts):
    shown = []
    for _ in range(3):
        trace = [step("Gold", False), step("Other", True), REJECTS, REJECTS, SEARCHES, ACCEPTS, FUSES]
        verdicts(EXAMPLE, RIGHT, trace)
        assert [predictor for predictor, *_ in trace] == [PROGRAM.paragraph_review.review, PROGRAM.evidence_fusion.fuse]
        shown.append(trace[0])
    assert shown == [REJECTS, SEARCHES, ACCEPTS]


def test_a_step_that_lists_all_is_right_and_one_that_gives_a_part_is_not():
    listed = dspy.Example(question="q", answer_style="short", answers=["Po", "Elbe"], needed=[["Po"], ["Elbe"]])
    given = Verdicts(metric("by-style"))
    for answer, right in (("Elbe and Po", True), ("Po", False)):
        _, inputs, reply = FUSES
        assert given._answers_right((None, inputs, {**reply, "answer": answer}), listed) is right
    for answer, right in (("Po", True), ("Po; Rhine", False)):  # a path of Tree of Reviews proves a part
        assert given._answers_right((None, inputs, {"supported_answer": answer}), listed) is right


def test_only_a_good_prediction_teaches(verdicts):
    trace = [REJECTS, ACCEPTS]
    assert not verdicts(EXAMPLE, dspy.Prediction(answer="wrong"), trace)
    assert len(trace) == 2
    assert verdicts(EXAMPLE, dspy.Prediction(answer="right"), trace)
    assert trace == [REJECTS]


@pytest.mark.parametrize("name", ["support-f1", "sp-f1", "answer-recall", "em"])
def test_a_step_that_answers_is_shown_whatever_the_metric_reads(name):
    told = {"title": "Gold", "text": "x", "sentences": ["x"], "supporting": [0]}
    gold = {"gold_titles": ["Gold"], "gold_sentences": [told]}
    example = dspy.Example(question="q", answers=["x"], **gold)
    found = [Passage(id="1", title="Gold", text="x")]
    right = dspy.Prediction(answer="x", final_content="So [1].", references=found, seen=found, failure=None)
    trace = [ACCEPTS, FUSES]
    Verdicts(replace(metric(name), grade=lambda graded, gold: 1.0))(example, right, trace)
    assert trace == [ACCEPTS, FUSES]


def test_gepa_reflects_on_the_whole_trace(verdicts):
    trace = [REJECTS, ACCEPTS]
    verdicts.with_feedback(dspy.Example(question="q", answers=["x"]), RIGHT, trace)
    assert trace == [REJECTS, ACCEPTS]


def test_a_failed_prediction_is_never_a_demonstration(mini):
    accepts_all = Verdicts(lambda example, prediction, trace=None: True)
    failed = dspy.Prediction(answer="Prague", failure=Failure(cause="timeout", message="late"))
    assert accepts_all(mini.train[0], failed, []) is False
    assert accepts_all(mini.train[0], failed) == 0
    assert accepts_all.failures == {"timeout": 2}


@pytest.mark.parametrize(
    ("score", "verdict"), [(0.05, False), (0.99, False), (1.0, True), (True, True), (0, False), (0.7 + 0.2 + 0.1, True)]
)
def test_a_metric_that_gives_numbers_must_give_a_full_score_which_may_be_added_up(score, verdict, mini):
    judge = Verdicts(lambda example, prediction, trace=None: score)
    answer = dspy.Prediction(answer="x", failure=None)
    assert judge(mini.train[0], answer, []) is verdict
    assert judge.accepts(mini.train[0], answer) is verdict
    assert judge.accepted == 2 * verdict


def test_a_metric_of_ones_own_gives_its_verdict_where_an_optimizer_asks_without_a_trace(mini):
    def graded(example, prediction, trace=None):
        return 0.8 if trace is None else True

    judge, answer = Verdicts(graded), dspy.Prediction(answer="x", failure=None)
    told = judge.with_feedback(mini.train[0], answer)
    assert (told.score, told.accepted) == (0.8, True)
    assert told.feedback.startswith("The answer 'x' is good enough")
    assert judge.accepts(mini.train[0], answer) is True
    assert (judge.asked, judge.accepted) == (2, 2)


def test_a_metric_of_ours_scores_an_answer_once(monkeypatch):
    example, scored = dspy.Example(question="Who?", answers=["the old Charles Bridge"]), []
    judge, score = Verdicts(metric("f1")), type(metric("f1")).score
    monkeypatch.setattr(type(judge.metric), "score", lambda *given: (scored.append(given), score(*given))[1])
    told = judge.with_feedback(example, dspy.Prediction(answer="Charles Bridge", failure=None))
    assert (told.score, told.accepted, len(scored)) == (0.8, True, 1)


def test_candidates_are_compared_by_scores_and_demonstrations_chosen_by_verdicts():
    example = dspy.Example(question="Who?", answers=["the old Charles Bridge"])
    judge = Verdicts(metric("f1"))
    half, most = (dspy.Prediction(answer=answer, failure=None) for answer in ("old", "Charles Bridge"))
    assert [judge(example, answer) for answer in (half, most)] == [0.5, 0.8]
    assert [judge(example, answer, []) for answer in (half, most)] == [False, True]
    assert (judge.asked, judge.accepted) == (4, 2)


@pytest.mark.parametrize("score", [55, float("nan"), dspy.Prediction(score=2.0)])
def test_a_score_above_a_full_one_is_refused(score, mini):
    judge = Verdicts(lambda example, prediction, trace=None: score)
    with pytest.raises(MetricFaultError, match=r"it gave .*, and a full score is 1"):
        judge(mini.train[0], dspy.Prediction(answer="x", failure=None))
