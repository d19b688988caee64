"""Answers of several items, answers that are not there, and counts."""

from types import SimpleNamespace
from typing import Any

import pytest

from questree.common.errors import QuestreeError
from questree.metrics import METRICS, Gold, declined, declined_rates, forms, list_scores, metric, metric_for

TWO = [["Ann Lee"], ["Bo Ek", "B. Ek"]]
PART = ["list-f1", "list-precision", "list-recall", "complete"]


def gold(*needed: list[str], **fields: Any) -> SimpleNamespace:
    answers = [item[0] for item in needed]
    return SimpleNamespace(answers=answers, answer_style="short", needed=[*needed], **fields)


def said(answer: str | None = "", **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(answer=answer, **fields)


@pytest.mark.parametrize(
    ("needed", "answer", "scores"),
    [
        (TWO, "Ann Lee; Bo Ek", (1, 1, 1, 1)),
        (TWO, "the b. ek and ANN LEE.", (1, 1, 1, 1)),
        (TWO, "- Ann Lee\n- Bo Ek", (1, 1, 1, 1)),
        (TWO, "Bo Ek", (2 / 3, 1, 1 / 2, 0)),
        (TWO, "Ann Lee, Bo Ek, Cy Oh", (0.8, 2 / 3, 1, 0)),
        (TWO, "Bo Ek, B. Ek", (1 / 2, 1 / 2, 1 / 2, 0)),  # one item of the two, and one too many
        (TWO, "Ann Leeson", (0, 0, 0, 0)),
        ([["Trinidad and Tobago"], ["Cuba"]], "Cuba and Trinidad and Tobago", (1, 1, 1, 1)),
        ([["administrator, arts"], ["nurse"]], "nurse; administrator, arts", (1, 1, 1, 1)),
        ([["4 March 1998"], ["0897-11-13"]], "13 November 897, 1998-03-04", (1, 1, 1, 1)),
        ([["1,200"], ["3.5"]], "35; 1200", (1 / 2, 1 / 2, 1 / 2, 0)),
        ([["C"], ["C++"]], "C++, C", (1, 1, 1, 1)),
        ([["3"], ["5"]], "five, three", (1, 1, 1, 1)),
        ([["A"], ["*"]], "*; A", (1, 1, 1, 1)),
    ],
)
def test_items_are_matched_one_to_one_by_their_values(needed, answer: str, scores) -> None:
    assert tuple(metric(name)(gold(*needed), said(answer)) for name in PART) == pytest.approx(scores)


def test_items_of_a_prediction_are_taken_as_they_are() -> None:
    listed = said("not looked at", answers=["Bo Ek", "Ann Lee"])
    assert metric("complete")(gold(*TWO), listed) == 1
    assert metric("complete")(gold(["Ann Lee"], ["Paris, Texas"]), said(answers=["Paris, Texas", "Ann Lee"])) == 1
    assert metric("complete")(gold(["Ann Lee"], ["Bo Ek"]), said(answers=["Ann Lee and Bo Ek"])) == 0
    assert metric("list-f1")(gold(*TWO), said("Ann Lee", answers=[])) == 0
    assert list_scores([" ", "Ann Lee"], TWO)["precision"] == 1


def test_an_answer_of_one_thing_is_a_list_of_one_of_any_spelling() -> None:
    one = SimpleNamespace(answers=["Bosnia and Herzegovina", "BiH"], answer_style="short")
    assert [metric(name)(one, said("Bosnia and Herzegovina")) for name in PART] == [1, 1, 1, 1]
    assert metric("list-precision")(one, said("BiH, Serbia")) == 0.5
    with pytest.raises(QuestreeError, match="regular expressions"):
        metric("list-f1")(SimpleNamespace(answers=["Bi?H"], answers_are_regex=True), said("BiH"))


def test_by_style_takes_f1_for_lists_and_half_of_one_teaches_nothing() -> None:
    by_style = metric_for("mixed")
    assert by_style(gold(*TWO), said("Bo Ek")) == pytest.approx(2 / 3)  # cover-em would give all of it
    assert by_style(gold(*TWO), said("Bo Ek"), trace=[]) is False
    assert by_style(gold(*TWO), said("not looked at", answers=["Bo Ek", "Ann Lee"]), trace=[]) is True
    four = gold(["Ann"], ["Bo"], ["Cy"], ["Di"])
    assert by_style(four, said("Ann, Bo, Cy"), trace=[]) is True
    assert metric("complete")(four, said("Ann, Bo, Cy"), trace=[]) is False
    assert Gold.of(SimpleNamespace(answers=["Ann", "Bo"], answer_style="list")).items == (("Ann",), ("Bo",))
    assert metric_for("list") is METRICS["list-f1"]


@pytest.mark.parametrize("name", ["by-style", "em", "f1", "cover-em", *PART, "em-best-sample", "rouge-l", "count"])
def test_of_a_question_without_an_answer_saying_none_is_right(name: str) -> None:
    absent = SimpleNamespace(answers=[], answer_style="short")
    for none in (said(), said(None), said(" "), said("unread", answers=[])):
        assert metric(name)(absent, none) == 1
        assert metric(name)(absent, none, trace=[]) is True
    for wrong in (said("Ann"), said("", failure="timeout"), said("", answers=["Ann"])):
        assert metric(name)(absent, wrong) == 0


@pytest.mark.parametrize("name", ["em", "f1", "cover-em", "em-best-sample", "count", "rouge-l"])
def test_a_metric_of_one_thing_does_not_take_an_item_for_a_list(name: str) -> None:
    with pytest.raises(QuestreeError, match=r"The answer is a list.*take by-style or list-f1"):
        metric(name)(gold(*TWO), said("Ann Lee"))


def test_what_is_looked_for_in_passages_is_every_item_and_there_must_be_one() -> None:
    seen = [SimpleNamespace(id="1", title="Ann Lee", text="A crane."), SimpleNamespace(id="2", title="B. Ek", text="")]
    both = metric("answer-recall")
    assert [both(gold(*TWO), said(seen=some)) for some in (seen, seen[:1])] == [1, 0]
    for name in ("answer-recall", "answer-recall@5"):
        with pytest.raises(QuestreeError, match="the question has none"):
            metric(name)(SimpleNamespace(answers=[]), said(seen=seen))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        *[("3", 1), ("three sons", 1), ("He has 3.0 sons.", 1), ("13", 0), ("3 of 12", 0), ("Ann, Bo, Cy", 0)],
        *[("3.5", 0), ("3 (Ann, Bo and Cy)", 1), ("three: Ann, Bo", 0), ("3 (in all)", 1)],
    ],
)
def test_a_count_is_compared_as_a_number(answer: str, right: float) -> None:
    asked = SimpleNamespace(answers=["3"], answer_style="short", kind="count")
    assert metric("by-style")(asked, said(answer)) == right
    other = SimpleNamespace(answers=["3"], answer_style="short", kind="bridge")
    assert metric("by-style")(other, said("3 of 12")) == 1  # as before


def test_two_rates_tell_declining_from_answering() -> None:
    told = [(False, True), (False, True), (False, False), (True, False), (True, True)]
    rates = declined_rates(told)
    assert {name: (rate.mean, rate.n) for name, rate in rates.items()} == {
        "declined": (pytest.approx(2 / 3), 3),
        "not declined": (0.5, 2),
    }
    assert set(declined_rates(told[:2])) == {"declined"}
    assert not declined(said("", failure="timeout"))


def test_two_spellings_of_a_value_share_a_form() -> None:
    assert forms("The O'Hara") & forms("OHara")
    assert not forms("C") & forms("C++")
