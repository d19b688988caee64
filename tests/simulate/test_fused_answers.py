"""The final answer from knowledge and from assertions, with its marks."""

from __future__ import annotations

from typing import Any

import dspy
from tiny_world import BLANK, FIRST, OLDER, PASSAGES, RIVER, SURE, ask

from questree.signatures.knowledge import AnswerWithKnowledge
from questree.signatures.reviews import FuseAnalyses, FuseEvidence, FuseParagraphs
from questree.simulate import Traits

PATH = ["The Metamorphosis", "Franz Kafka", "Prague"]


def numbered(*titles: str) -> list[str]:
    return [f"[{n}] {PASSAGES[title].shown()}" for n, title in enumerate(titles, start=1)]


def said(answer: str, *references: int) -> dict[str, Any]:
    return {"answer": answer, "references": list(references)}


def answered(signature: Any, traits: Traits = BLANK, question: Any = RIVER, **given: Any) -> dspy.Prediction:
    return ask(signature, traits, question=question.question, answer_style=question.style, **given)


def fused(*answers: str, traits: Traits = BLANK) -> str:
    assertions = [said(answer, n) for n, answer in enumerate(answers, start=1)]
    return str(answered(FuseAnalyses, traits, assertions=assertions).answer)


def test_passages_that_hold_every_step_give_the_answer_and_are_marked() -> None:
    for signature in (AnswerWithKnowledge, FuseParagraphs):
        found = answered(signature, passages=numbered("Prague", "The Metamorphosis", "Franz Kafka"))
        assert found.answer == "Vltava"
        assert found.final_content == (
            "The Metamorphosis is a story by Franz Kafka that appeared in Leipzig in 1915 [2]. "
            "Franz Kafka, born in Prague in 1883, worked for an insurance company [3]. "
            "Prague lies on the Vltava and has more than a million inhabitants [1]."
        )
    assert (
        answered(AnswerWithKnowledge, question=OLDER, passages=numbered("Thomas Mann", "Franz Kafka")).answer == "yes"
    )
    assert answered(AnswerWithKnowledge, question=FIRST, passages=numbered("Buddenbrooks")).answer != "Buddenbrooks"


def test_memory_fills_in_where_the_passages_are_silent_right_or_wrong() -> None:
    given = {"passages": numbered("The Metamorphosis", "Franz Kafka")}
    assert answered(AnswerWithKnowledge, SURE, **given).answer == "Vltava"
    assert "[3]" not in answered(AnswerWithKnowledge, SURE, **given).final_content
    assert answered(AnswerWithKnowledge, BLANK.model_copy(update={"invents": 1.0}), **given).answer == "Trave"
    assert "stays open" in answered(AnswerWithKnowledge, BLANK, **given).final_content


def test_useless_passages_mislead_a_model_that_misreads() -> None:
    misreading = SURE.model_copy(update={"misreads": 1.0})
    assert (
        answered(AnswerWithKnowledge, misreading, passages=numbered("Buddenbrooks", "Thomas Mann")).answer != "Vltava"
    )


def test_most_assertions_win_and_a_tie_is_drawn_or_remembered() -> None:
    assert fused("Trave", "Vltava", "Trave") == "Trave"
    drawn = {fused("Trave", "Vltava", traits=BLANK.model_copy(update={"seed": seed})) for seed in range(20)}
    assert drawn == {"Trave", "Vltava"}
    assert {fused("Trave", "Vltava", traits=SURE.model_copy(update={"seed": seed})) for seed in range(5)} == {"Vltava"}


def test_passages_outweigh_what_most_assert() -> None:
    assertions = [said("Trave", 1), said("Trave", 2), said("Vltava", 1, 2, 3)]
    assert answered(FuseEvidence, assertions=assertions, passages=numbered(*PATH)).answer == "Vltava"
    assert answered(FuseEvidence, assertions=assertions, passages=numbered(*PATH[:2])).answer == "Trave"
    assert answered(FuseEvidence, SURE, assertions=[], passages=[]).answer == "Vltava"


def test_assertions_are_told_with_their_marks_unless_forgotten() -> None:
    assertions = [said("Trave", 1), said("Vltava", 2, 3), said("Vltava", 4)]
    content = answered(FuseAnalyses, assertions=assertions).final_content
    assert content.endswith("of The Metamorphosis?” is Vltava [2] [3]. Another way leads to Trave [1].")
    forgetful = BLANK.model_copy(update={"cites": 0.0})
    assert "[" not in answered(FuseAnalyses, forgetful, assertions=assertions).final_content
    demos = [{"question": "q", "answer_style": "short", "assertions": [], "final_content": "So [1].", "answer": "x"}]
    assert "[2]" in answered(FuseAnalyses, forgetful, assertions=assertions, demos=demos * 3).final_content
