"""Knowledge recalled, named and filtered, as the traits have it."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_world import BLANK, PASSAGES, RIVER, SURE, ask

from questree.signatures.knowledge import (
    FilterKnowledge,
    FilterKnowledgeOnTopic,
    JudgePassages,
    NameTopic,
    RecallPassage,
)
from questree.simulate import Traits

SEEDS = range(60)
FAIR = BLANK.model_copy(update={"misjudges": 0, "misjudges_shown": 0, "overlooks": 0, "overlooks_shown": 0})


def numbered(*titles: str) -> list[str]:
    return [f"[{n}] {PASSAGES[title].shown()}" for n, title in enumerate(titles, start=1)]


GIVEN = numbered("Buddenbrooks", "Prague", "Thomas Mann", "The Metamorphosis")


def kept(traits: Traits, passages: list[str] = GIVEN, signature: Any = FilterKnowledge, **more: Any) -> list[int]:
    found: list[int] = ask(signature, traits, question=RIVER.question, passages=passages, **more).kept
    return found


def demo(keeps: list[int]) -> dict[str, Any]:
    return {"question": RIVER.question, "passages": GIVEN, "reasons": "-", "kept": keeps}


def useful(traits: Traits, passages: list[str] = GIVEN, **more: Any) -> list[int]:
    """The same, of the signature that judges each passage."""
    judged = ask(JudgePassages, traits, question=RIVER.question, passages=passages, **more).judgements
    assert [one.number for one in judged] == list(range(1, len(passages) + 1))
    return [one.number for one in judged if one.useful]


def judging(keeps: list[int]) -> dict[str, Any]:
    rows = [{"number": number, "says": "-", "useful": number in keeps} for number in range(1, len(GIVEN) + 1)]
    return {"question": RIVER.question, "passages": GIVEN, "judgements": rows}


def test_the_passages_of_the_steps_are_kept_by_their_printed_numbers() -> None:
    assert kept(FAIR) == [2, 4]
    assert kept(FAIR, numbered("Lübeck", "Thomas Mann")) == []
    assert useful(FAIR) == [2, 4]
    assert useful(FAIR, numbered("Lübeck", "Thomas Mann")) == []


def test_each_passage_is_misjudged_or_overlooked_as_often_as_the_traits_say() -> None:
    rates = {"misjudges": 0.3, "overlooks": 0.3}
    decisions = [kept(FAIR.model_copy(update={**rates, "seed": seed})) for seed in SEEDS]
    for number, true in enumerate([False, True, False, True], start=1):
        wrong = sum((number in keeps) != true for keeps in decisions)
        assert 0.15 < wrong / len(decisions) < 0.45


@pytest.mark.parametrize(("reads", "shows"), [(kept, demo), (useful, judging)])
def test_demonstrations_that_keep_some_teach(reads: Any, shows: Any) -> None:
    def mistakes(demos: list[dict[str, Any]]) -> int:
        rates = [FAIR.model_copy(update={"misjudges": 0.5, "overlooks": 0.5, "seed": seed}) for seed in SEEDS]
        return sum(len({2, 4} ^ set(reads(one, demos=demos))) for one in rates)

    assert mistakes([shows([2, 4])] * 3) == 0 < mistakes([shows([2, 4])]) < mistakes([])


def test_a_wrong_memory_makes_a_passage_doubted_unless_the_topic_is_forgotten() -> None:
    stubborn = FAIR.model_copy(update={"invents": 1.0, "trusts": 0.0})
    assert kept(stubborn) == []
    assert kept(stubborn, signature=FilterKnowledgeOnTopic, topic="geography") == [2, 4]
    assert kept(SURE.model_copy(update={"overlooks": 0.0, "misjudges": 0.0, "trusts": 0.0})) == [2, 4]


def test_a_recalled_passage_goes_through_the_steps_right_or_invented() -> None:
    right = ask(RecallPassage, FAIR.model_copy(update={"completes": 1.0}), question=RIVER.question).passage
    assert right.endswith("Where was Franz Kafka born: Prague. Which river flows through Prague: Vltava.")
    invented = ask(RecallPassage, FAIR.model_copy(update={"completes": 0.0}), question=RIVER.question).passage
    assert invented.startswith("Who wrote The Metamorphosis: Thomas Mann. Where was Thomas Mann born: Prague.")


def test_a_topic_is_named_by_what_is_asked() -> None:
    topics = [ask(NameTopic, question=words).topic for words in (RIVER.question, "When did it end?", "Why?")]
    assert topics == ["geography", "history", "general knowledge"]
    assert ask(NameTopic, question="Who wrote The Metamorphosis?").topic == "people"
