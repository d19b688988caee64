"""Which steps of a trace are demonstrated: of every kind, and none that the gold passages contradict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from steps import last_step, titled

from questree.lm.limits import Limits, limited
from questree.metrics.found_passages import passage_fingerprint
from questree.programs import (
    BlendFilter,
    BlendFilterSettings,
    ChainOfReviews,
    SearChain,
    TreeOfReviews,
    TreeOfReviewsSettings,
)
from questree.programs.demonstrations import (
    Judgement,
    alternate,
    contradicts,
    judgements_of,
    kind_of,
    note,
    select_demonstrations,
)
from questree.retrieval import Passage

TREE, PAPER_TREE, CHAIN = (
    TreeOfReviews(),
    TreeOfReviews(settings=TreeOfReviewsSettings(preset="paper")),
    ChainOfReviews(),
)
BLEND, PAPER_BLEND = BlendFilter(), BlendFilter(settings=BlendFilterSettings(preset="paper"))
ASKED = {"question": "q", "answer_style": "short"}


def review(titles: str | list[str], action: str, program: Any = TREE) -> Any:
    return last_step(program.paragraph_review, reply_of(action, program), passages=titled(titles), tried=[], **ASKED)


def reply_of(action: str, program: Any) -> dict[str, Any]:
    accepts = action == "accept"
    if program is TREE:
        reply = {"facts": "Hm [1].", "last_adds": action != "reject", "missing": "" if accepts else "a fact"}
        query = "" if accepts else "What is it?"
        return {**reply, "supported_answer": "a" if accepts else "", "next_query": query, "guess": ""}
    reply = {"relevant": action != "reject", "supported": accepts, "answer": "a" if accepts else None}
    thoughts = {"thoughts": "Hm."} if program is CHAIN else {}
    return {**thoughts, **reply, "next_query": None}


def filtering(titles: str, kept: list[int], program: Any = BLEND) -> Any:
    judgements = [{"number": number, "says": "something", "useful": True} for number in kept]
    reply = {"judgements": judgements} if program is BLEND else {"reasons": "Hm.", "kept": kept}
    return last_step(program.knowledge_filter, reply, question="q", passages=titled(titles))


def fusion() -> Any:
    reply = {"final_content": "So.", "answer": "a"}
    return last_step(TREE.evidence_fusion, reply, evidence=[], passages=[], **ASKED)


def test_where_gold_passages_are_known_a_title_is_not_enough():
    def by_passage(step: Any, *gold: str) -> bool:
        return not contradicts(judgements_of(step), SimpleNamespace(gold_titles=["G"], gold_passages=list(gold)))

    by_id, by_words = ["G"], [passage_fingerprint("G", "text")]
    for step, right in [(review("G", "search"), True), (review("G", "reject"), False)]:
        assert by_passage(step, *by_id) == by_passage(step, *by_words) == right
        assert by_passage(step, "another passage of G") != right


def test_of_several_paragraphs_those_that_the_prompt_showed_are_judged():
    long = [Passage(id=title, title=title, text=" ".join(f"word{n}" for n in range(300))) for title in "GX"]
    with limited(Limits(window=3000)):
        step = last_step(CHAIN.paragraph_review, reply_of("search", CHAIN), passages=long, tried=[], **ASKED)
    assert [passage.id for judged in judgements_of(step) for passage in judged.passages] == ["X"]


def example(*gold: str) -> Any:
    return SimpleNamespace(gold_titles=list(gold))


def sound(step: Any, *gold: str) -> bool:
    return not contradicts(judgements_of(step), example(*gold))


@pytest.mark.parametrize("program", [TREE, PAPER_TREE], ids=["best", "paper"])
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
def test_a_review_that_contradicts_the_gold_passages(titles, action, is_sound, program):
    assert sound(review(titles, action, program), "G") == is_sound


@pytest.mark.parametrize(
    ("titles", "action", "is_sound"),
    [("GX", "search", True), ("XX", "search", False), ("GX", "reject", False), ("XX", "reject", True)],
)
def test_a_review_of_a_chain_judges_all_its_paragraphs(titles, action, is_sound):
    assert sound(review(titles, action, CHAIN), "G") == is_sound


@pytest.mark.parametrize("program", [BLEND, PAPER_BLEND], ids=["best", "paper"])
@pytest.mark.parametrize(
    ("kept", "is_sound"), [([1], True), ([], False), ([1, 2], False), ([2], False), ([1, 9], True), ([1, 0], True)]
)
def test_a_filtering_that_contradicts_the_gold_passages(kept, is_sound, program):
    assert sound(filtering("GX", kept, program), "G") == is_sound


def test_titles_are_compared_as_prompts_show_them():
    assert not sound(review(["[[ ## a ## ]]"], "reject"), "[[ ## a ## ]]")
    assert sound(review(["Gold rush"], "reject"), "Gold")


def test_without_gold_passages_nothing_is_contradicted():
    assert sound(review("X", "accept"))
    assert not contradicts(judgements_of(review("X", "accept")), dspy.Example(question="q"))


def test_kinds():
    actions = ("accept", "search", "reject")
    assert [kind_of(review("A", action)) for action in actions] == ["accept", "search", "reject after facts"]
    assert [kind_of(review("A", action, PAPER_TREE)) for action in actions] == list(actions)
    assert [kind_of(filtering("AB", kept)) for kept in ([1, 2], [2], [], [7])] == ["all", "some", "none", "none"]
    tracing = last_step(SearChain().tracing, {"final_content": "So.", "answer": "a"}, path=[], **ASKED)
    assert [kind_of(step) for step in (fusion(), tracing)] == ["", "cites"]


def test_what_is_noted_on_a_reply_is_in_no_demonstration():
    reply = dspy.Prediction(answer="a")
    note(reply, "accept", [Judgement(titled("G"), True)])
    assert dict(reply) == {"answer": "a"}


def test_kinds_take_turns():
    assert "".join(alternate("aaabbc", lambda item: item)) == "abcaba"
    assert alternate([], lambda item: item) == []


def test_the_first_demonstrations_of_a_review_are_of_different_kinds():
    trace = [review("G", "search"), review("G", "search"), review("X", "accept"), review("X", "reject")]
    trace += [review("G", "accept"), review("X", "reject")]
    kinds = [kind_of(step) for step in select_demonstrations(trace, example("G"))]
    assert kinds == ["search", "reject after facts", "accept", "search", "reject after facts"]


def test_predictors_are_balanced_each_by_itself():
    trace = [review("X", "reject"), fusion(), review("G", "accept"), fusion()]
    reviews, fuses = TREE.paragraph_review.review, TREE.evidence_fusion.fuse
    assert [step[0] for step in select_demonstrations(trace, example("G"))] == [reviews, reviews, fuses, fuses]
