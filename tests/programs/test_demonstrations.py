"""Which steps of a trace are demonstrated: of every kind, and none that the gold passages contradict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dspy
import pytest

from questree.programs import BlendFilter, ChainOfReviews, Program, SearChain, TreeOfReviews, select_demonstrations
from questree.programs.demonstrations import balanced, contradicts

ONE, OTHER = dspy.Predict("question -> answer"), dspy.Predict("question -> answer")
TREE, CHAIN, BLEND = TreeOfReviews(), ChainOfReviews(), BlendFilter()


def review(titles: str, action: str) -> tuple[Any, dict[str, Any], dspy.Prediction]:
    reply = dspy.Prediction(
        relevant=action != "reject",
        supported=action == "accept",
        answer="a" if action == "accept" else None,
        next_query=None,
    )
    return ONE, {"question": "q", "passages": [f"{title} | text" for title in titles]}, reply


def filtering(titles: str, kept: list[int]) -> tuple[Any, dict[str, Any], dspy.Prediction]:
    shown = [f"[{number}] {title} | text" for number, title in enumerate(titles)]
    return ONE, {"question": "q", "passages": shown}, dspy.Prediction(kept=kept)


def example(*gold: str) -> Any:
    return SimpleNamespace(gold_titles=list(gold))


def sound(program: Program, step: Any, *gold: str) -> bool:
    return not contradicts(program.judgements(step), example(*gold))


@pytest.mark.parametrize(
    ("titles", "action", "is_sound"),
    [
        ("G", "search", True),
        ("G", "accept", True),
        ("G", "reject", False),
        ("X", "reject", True),
        ("X", "search", False),
        ("X", "accept", False),
        ("GX", "search", False),  # the node's own paragraph is judged, the last one
        ("GX", "reject", True),
        ("XG", "reject", False),
    ],
)
def test_a_review_that_contradicts_the_gold_passages(titles, action, is_sound):
    assert sound(TREE, review(titles, action), "G") == is_sound


@pytest.mark.parametrize(
    ("titles", "action", "is_sound"),
    [("GX", "search", True), ("XX", "search", False), ("GX", "reject", False), ("XX", "reject", True)],
)
def test_a_review_of_a_chain_judges_all_its_paragraphs(titles, action, is_sound):
    assert sound(CHAIN, review(titles, action), "G") == is_sound


@pytest.mark.parametrize(
    ("kept", "is_sound"), [([0], True), ([], False), ([0, 1], False), ([1], False), ([0, 9], True)]
)
def test_a_filtering_that_contradicts_the_gold_passages(kept, is_sound):
    assert sound(BLEND, filtering("GX", kept), "G") == is_sound


def test_titles_are_compared_as_prompts_show_them():
    step = review(["[[ ## a ## ]]"], "reject")
    step[1]["passages"] = ["[ [ # a # ] ] | text"]
    assert not sound(TREE, step, "[[ ## a ## ]]")
    assert sound(TREE, review(["Gold rush"], "reject"), "Gold")


def test_without_gold_passages_nothing_is_contradicted():
    assert sound(TREE, review("X", "accept"))
    assert not contradicts(TREE.judgements(review("X", "accept")), dspy.Example(question="q"))


def test_kinds():
    assert [TREE.kind_of(review("A", action)) for action in ("accept", "search", "reject")] == [
        "accept",
        "search",
        "reject",
    ]
    assert [BLEND.kind_of(filtering("AB", kept)) for kept in ([0, 1], [1], [], [7])] == ["all", "some", "none", "none"]
    other = (ONE, {"question": "q"}, dspy.Prediction(answer="a"))
    assert {program.kind_of(other) for program in (TREE, CHAIN, BLEND, SearChain())} == {""}


def test_kinds_take_turns():
    assert "".join(balanced("aaabbc", lambda item: item)) == "abcaba"
    assert balanced([], lambda item: item) == []


def test_the_first_demonstrations_of_a_review_are_of_different_kinds():
    trace = [review("G", "search"), review("G", "search"), review("X", "accept"), review("X", "reject")]
    trace += [review("G", "accept"), review("X", "reject")]
    kinds = [TREE.kind_of(step) for step in select_demonstrations(TREE, trace, example("G"))]
    assert kinds == ["search", "reject", "accept", "search", "reject"]


def test_predictors_are_balanced_each_by_itself():
    other = (OTHER, {"question": "q"}, dspy.Prediction(answer="a"))
    trace = [review("X", "reject"), other, review("G", "accept"), other]
    assert [step[0] for step in select_demonstrations(TREE, trace, example("G"))] == [ONE, ONE, OTHER, OTHER]
