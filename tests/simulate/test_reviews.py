"""Paragraphs reviewed and completed: each trait moves what it names, and demonstrations lower the mistakes."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from tiny_world import BLANK, OLDER, PASSAGES, RIVER, SURE, ask

from questree.common.text import text_or_none
from questree.data import Question
from questree.signatures.reviews import CompleteParagraphs, ReviewParagraphs, ReviewParagraphsCoT
from questree.simulate import Mind, Traits, World
from questree.simulate.asked import Asked, Step
from questree.simulate.passages import Shown
from questree.simulate.prompt import Prompt

EXACT = {"misjudges": 0, "misjudges_shown": 0, "overlooks": 0, "overlooks_shown": 0, "asks": 1, "asks_shown": 1}
FAIR = BLANK.model_copy(update=EXACT)
PATH = ["The Metamorphosis", "Franz Kafka", "Prague"]
SEEDS = range(60)


def shown(*titles: str) -> list[str]:
    return [PASSAGES[title].shown() for title in titles]


def review(traits: Traits, *titles: str, signature: Any = ReviewParagraphs, **more: Any) -> dspy.Prediction:
    given = {"question": RIVER.question, "answer_style": "short", "passages": shown(*titles), **more}
    return ask(signature, traits, **given)


def fair(**update: Any) -> Traits:
    return FAIR.model_copy(update=update)


def demo(titles: list[str], relevant: bool, supported: bool) -> dict[str, Any]:
    replied = {"relevant": relevant, "supported": supported, "answer": "x", "next_query": "y"}
    return {"question": RIVER.question, "answer_style": "short", "passages": shown(*titles), **replied}


THREE_KINDS = [demo(PATH, True, True), demo(PATH[:1], True, False), demo(["Buddenbrooks"], False, False)]


def test_a_path_is_rejected_searched_on_or_accepted_by_what_it_holds() -> None:
    rejected, searched, accepted = review(FAIR, "Buddenbrooks"), review(FAIR, *PATH[:2]), review(FAIR, *PATH)
    assert (rejected.relevant, rejected.supported, text_or_none(rejected.answer)) == (False, False, None)
    assert (searched.relevant, searched.supported, text_or_none(searched.answer)) == (True, False, None)
    assert searched.next_query == "Which river flows through Prague?"
    assert (accepted.relevant, accepted.supported, accepted.answer) == (True, True, "Vltava")
    assert text_or_none(accepted.next_query) is None


def test_the_next_query_describes_what_the_passages_do_not_name() -> None:
    assert review(FAIR, "Franz Kafka").next_query == "Who wrote The Metamorphosis?"
    from_the_end = review(FAIR, "The Metamorphosis", "Prague")
    assert from_the_end.next_query == "Where was Franz Kafka born?"
    assert not from_the_end.supported


def test_an_answer_that_has_to_be_worked_out_is() -> None:
    accepted = review(FAIR, "Thomas Mann", "Franz Kafka", question=OLDER.question, answer_style="yes-no")
    assert accepted.answer == "yes"


def test_overlooking_and_misjudging_are_as_frequent_as_their_traits() -> None:
    overlooked = [not review(fair(overlooks=0.3, seed=seed), "Prague").relevant for seed in SEEDS]
    misjudged = [review(fair(misjudges=0.3, seed=seed), "Buddenbrooks").relevant for seed in SEEDS]
    assert 0.15 < sum(overlooked) / len(overlooked) < 0.45
    assert 0.15 < sum(misjudged) / len(misjudged) < 0.45


def test_too_little_is_taken_for_enough_only_by_a_model_that_has_an_answer() -> None:
    hasty = fair(misjudges=1.0)
    at_a_loss = review(hasty, "Buddenbrooks")
    assert (at_a_loss.relevant, at_a_loss.supported) == (True, False)
    assert review(hasty, *PATH[:2]).answer == "Prague"  # the last that was read
    knowing = hasty.model_copy(update={"knows": 1.0})
    assert review(knowing, *PATH[:2]).answer == "Vltava"
    inventing = hasty.model_copy(update={"invents": 1.0})
    assert review(inventing, *PATH[:2]).answer == "Trave"


def test_useless_paragraphs_beside_a_useful_one_mislead_the_model_that_misreads() -> None:
    assert review(fair(misreads=1.0), "Prague", "Lübeck").next_query != review(FAIR, "Prague", "Lübeck").next_query
    assert not review(fair(misreads=1.0), "Lübeck").relevant


def test_demonstrations_of_different_kinds_lower_the_mistakes() -> None:
    def mistakes(demos: list[dict[str, Any]]) -> int:
        rates = {"overlooks": 0.5, "misjudges": 0.5}
        return sum(not review(fair(seed=seed, **rates), "Prague", demos=demos).relevant for seed in SEEDS)

    alike = [THREE_KINDS[0]] * 3
    assert mistakes(THREE_KINDS) == 0 < mistakes(alike) < mistakes([])


def test_a_bad_search_asks_the_whole_question_again_and_demonstrations_help() -> None:
    traits = fair(asks=0.0)
    assert review(traits, *PATH[:1]).next_query == RIVER.question
    assert review(traits, *PATH[:1], demos=THREE_KINDS).next_query == "Where was Franz Kafka born?"


def test_thoughts_avoid_their_share_of_the_mistakes() -> None:
    def overlooked(thinks: float) -> int:
        traits = [fair(overlooks=0.8, thinks=thinks, seed=seed) for seed in SEEDS]
        return sum(not review(one, "Prague", signature=ReviewParagraphsCoT).relevant for one in traits)

    assert overlooked(1.0) == 0 < overlooked(0.5) < overlooked(0.0)
    assert "Franz Kafka" in review(FAIR, *PATH[:1], signature=ReviewParagraphsCoT).thoughts


def test_a_passage_is_judged_the_same_in_every_prompt_and_anew_in_every_sample() -> None:
    traits = fair(overlooks=0.5)
    alone = [review(traits.model_copy(update={"seed": n}), "Prague").relevant for n in range(20)]
    beside = [review(traits.model_copy(update={"seed": n}), "Lübeck", "Prague").relevant for n in range(20)]
    assert alone == beside
    sampled = [review(traits, "Prague", config={"temperature": 0.7, "seed": n}).relevant for n in range(20)]
    assert len(set(sampled)) == 2


def information(traits: Traits, *titles: str) -> str:
    return str(ask(CompleteParagraphs, traits, question=RIVER.question, passages=shown(*titles)).information)


def test_what_is_missing_is_recalled_or_invented() -> None:
    assert information(fair(completes=1.0), "The Metamorphosis") == "Where was Franz Kafka born: Prague."
    assert information(fair(completes=0.0), "The Metamorphosis") == "Where was Franz Kafka born: Lübeck."
    recalled = ["Prague" in information(fair(completes=0.3, seed=seed), "The Metamorphosis") for seed in SEEDS]
    assert 0.15 < sum(recalled) / len(recalled) < 0.45
    known = SURE.model_copy(update={**EXACT, "completes": 0.0})
    assert "Prague" in information(known, "The Metamorphosis")  # what it knows it also writes down


@pytest.mark.parametrize("passages", [["The Sun | It shines.", "Moby-Dick | A whale."], []])
def test_a_question_that_the_world_lacks_is_reviewed_by_titles(passages: list[str]) -> None:
    judged = review(FAIR, question="Who captains the ship in Moby-Dick?", passages=passages)
    assert judged.relevant == bool(passages)
    assert not judged.supported
    assert judged.next_query == "Who captains the ship in Moby-Dick?"


def test_without_annotated_steps_all_gold_passages_together_answer() -> None:
    words, titles = "Which is older, Alpha or Beta?", ["Alpha", "Gamma"]
    plain = Question(id="p", task="t", question=words, answers=["Beta"], gold_titles=titles, style="short", split="dev")
    asked = Asked(Mind(World([plain]), FAIR), Prompt("chat", words, values={"question": words}))
    first, second = Shown(1, "Alpha | It leads to Gamma."), Shown(2, "Gamma | It is old.")
    assert asked.gather([first])[0].answer is None
    assert asked.gather([first, second]) == [Step(words, "Beta", 2)]
    assert asked.missing_query(asked.gather([first]), [first]) == f"Gamma: {words}"
    assert asked.missing_query(asked.gather([]), []) == f"Alpha: {words}"
