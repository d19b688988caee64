"""What the simulated LM makes of passages: it reviews, keeps, recalls and fuses them by the steps of the question."""

from typing import Any

import dspy
import pytest
from tiny_world import BLANK, OLDER, PASSAGES, RIVER, SURE, ask

from questree.common.text import text_or_none
from questree.signatures.knowledge import (
    AnswerWithKnowledge,
    FilterKnowledge,
    FilterKnowledgeOnTopic,
    JudgePassages,
    NameTopic,
    RecallPassage,
)
from questree.signatures.reviews import (
    CompleteParagraphs,
    FuseAnalyses,
    FuseEvidence,
    FuseParagraphs,
    ReviewParagraphs,
    ReviewParagraphsCoT,
)
from questree.simulate import Traits
from questree.simulate.phrases import find_stated, mentions, write_fact

FAIR = BLANK.model_copy(
    update={"misjudges": 0, "misjudges_shown": 0, "overlooks": 0, "overlooks_shown": 0, "asks": 1, "asks_shown": 1}
)
PATH = ["The Metamorphosis", "Franz Kafka", "Prague"]
SEEDS = range(30)


def fair(**update: Any) -> Traits:
    return FAIR.model_copy(update=update)


def numbered(*titles: str) -> list[str]:
    return [f"[{n}] {PASSAGES[title].shown()}" for n, title in enumerate(titles, start=1)]


def review(traits: Traits, *titles: str, signature: Any = ReviewParagraphs, **more: Any) -> dspy.Prediction:
    shown = [PASSAGES[title].shown() for title in titles]
    return ask(signature, traits, **{"question": RIVER.question, "answer_style": "short", "passages": shown, **more})


def test_a_path_is_rejected_searched_on_or_accepted_by_what_it_holds() -> None:
    rejected, searched, accepted = review(FAIR, "Buddenbrooks"), review(FAIR, *PATH[:2]), review(FAIR, *PATH)
    assert (rejected.relevant, rejected.supported, text_or_none(rejected.answer)) == (False, False, None)
    assert (searched.relevant, searched.supported, text_or_none(searched.answer)) == (True, False, None)
    assert searched.next_query == "Which river flows through Prague?"
    assert (accepted.relevant, accepted.supported, accepted.answer) == (True, True, "Vltava")
    compared = review(FAIR, "Thomas Mann", "Franz Kafka", question=OLDER.question, answer_style="yes-no")
    assert compared.answer == "yes"
    assert "Franz Kafka" in review(FAIR, *PATH[:1], signature=ReviewParagraphsCoT).thoughts
    assert review(fair(asks=0.0), *PATH[:1]).next_query == RIVER.question


def test_traits_are_rates_of_mistakes_and_demonstrations_of_several_kinds_lower_them() -> None:
    def demo(titles: list[str], relevant: bool, supported: bool) -> dict[str, Any]:
        given = {"question": RIVER.question, "answer_style": "short", "passages": [PASSAGES[t].shown() for t in titles]}
        judged = {"relevant": relevant, "supported": supported, "analysis": ""}
        return {**given, **judged, "answer": "x", "next_query": "y"}

    def mistakes(demos: list[dict[str, Any]], overlooks: float = 0.5) -> int:
        traits = [fair(seed=seed, overlooks=overlooks, misjudges=0.5) for seed in SEEDS]
        return sum(not review(one, "Prague", demos=demos).relevant for one in traits)

    kinds = [demo(PATH, True, True), demo(PATH[:1], True, False), demo(["Buddenbrooks"], False, False)]
    assert mistakes(kinds) == 0 < mistakes([kinds[0]] * 3) < mistakes([])
    assert 0 < mistakes([], overlooks=0.2) < mistakes([], overlooks=0.5)


def test_too_little_is_taken_for_enough_only_by_a_model_that_has_an_answer() -> None:
    hasty = fair(misjudges=1.0)
    assert not review(hasty, "Buddenbrooks").supported
    assert review(hasty, *PATH[:2]).answer == "Prague"  # the last that was read
    assert review(hasty.model_copy(update={"knows": 1.0}), *PATH[:2]).answer == "Vltava"
    assert review(hasty.model_copy(update={"invents": 1.0}), *PATH[:2]).answer == "Trave"


def test_what_is_missing_is_recalled_or_invented() -> None:
    def completed(completes: float) -> tuple[str, str]:
        traits, asked = fair(completes=completes), {"question": RIVER.question}
        passages = [PASSAGES["The Metamorphosis"].shown()]
        information = ask(CompleteParagraphs, traits, **asked, passages=passages).information
        return information, ask(RecallPassage, traits, **asked).passage

    information, passage = completed(1.0)
    assert information == "Franz Kafka was born in Prague."
    assert passage.endswith("Franz Kafka was born in Prague. Vltava flows through Prague.")
    information, passage = completed(0.0)
    assert information == "Franz Kafka was born in Lübeck."
    assert passage.startswith("Thomas Mann wrote The Metamorphosis. Thomas Mann was born in Prague.")


def test_a_question_that_the_world_lacks_is_reviewed_by_titles() -> None:
    unknown = "Who captains the ship in Moby-Dick?"
    for passages in (["The Sun | It shines.", "Moby-Dick | A whale."], []):
        judged = review(FAIR, question=unknown, passages=passages)
        assert (judged.relevant, judged.supported, judged.next_query) == (bool(passages), False, unknown)


def test_the_passages_of_the_steps_are_kept_by_their_printed_numbers() -> None:
    given, others = numbered("Buddenbrooks", "Prague", "Thomas Mann", "The Metamorphosis"), numbered("Lübeck")
    for passages, kept in ((given, [2, 4]), (others, [])):
        asked = {"question": RIVER.question, "passages": passages}
        assert ask(FilterKnowledge, FAIR, **asked).kept == kept
        judged = ask(JudgePassages, FAIR, **asked).judgements
        assert [one.number for one in judged] == list(range(1, len(passages) + 1))
        assert [one.number for one in judged if one.useful] == kept
    stubborn, asked = fair(invents=1.0, trusts=0.0), {"question": RIVER.question, "passages": given}
    assert ask(FilterKnowledge, stubborn, **asked).kept == []  # its memory says otherwise
    assert ask(FilterKnowledgeOnTopic, stubborn, **asked, topic="geography").kept == [2, 4]


def test_a_topic_is_named_by_what_is_asked() -> None:
    topics = [ask(NameTopic, question=words).topic for words in (RIVER.question, "When did it end?", "Why?")]
    assert topics == ["geography", "history", "general knowledge"]


def answered(signature: Any, traits: Traits = BLANK, question: Any = RIVER, **given: Any) -> dspy.Prediction:
    return ask(signature, traits, question=question.question, answer_style=question.style, **given)


def said(answer: str, *references: int) -> dict[str, Any]:
    return {"answer": answer, "references": list(references)}


def test_passages_that_hold_every_step_give_the_answer_and_are_marked() -> None:
    for signature in (AnswerWithKnowledge, FuseParagraphs):
        found = answered(signature, passages=numbered("Prague", "The Metamorphosis", "Franz Kafka"))
        assert found.answer == "Vltava"
        assert found.final_content == (
            "The Metamorphosis is a story by Franz Kafka that appeared in Leipzig in 1915 [2]. "
            "Franz Kafka, born in Prague in 1883, worked for an insurance company [3]. "
            "Prague lies on the Vltava and has more than a million inhabitants [1]."
        )
    two = {"passages": numbered(*PATH[:2])}
    assert answered(AnswerWithKnowledge, SURE, **two).answer == "Vltava", "memory fills in"
    assert "[3]" not in answered(AnswerWithKnowledge, SURE, **two).final_content
    assert answered(AnswerWithKnowledge, fair(invents=1.0), **two).answer == "Trave"
    assert "stays open" in answered(AnswerWithKnowledge, BLANK, **two).final_content


def test_most_assertions_win_unless_passages_say_otherwise_and_are_told_with_their_marks() -> None:
    assertions = [said("Trave", 1), said("Trave", 2), said("Vltava", 1, 2, 3)]
    assert answered(FuseAnalyses, assertions=assertions).answer == "Trave"
    assert answered(FuseEvidence, assertions=assertions, passages=numbered(*PATH)).answer == "Vltava"
    assert answered(FuseEvidence, assertions=assertions, passages=numbered(*PATH[:2])).answer == "Trave"
    content = answered(FuseAnalyses, assertions=[said("Trave", 1), said("Vltava", 2, 3), said("Vltava", 4)])
    assert content.final_content.startswith("Vltava flows")
    assert content.final_content.endswith(" [2] [3]. Another way leads to Trave [1].")


@pytest.mark.parametrize(
    ("query", "answer", "told"),
    [
        ("Who wrote The Hobbit?", "J. R. R. Tolkien", "J. R. R. Tolkien wrote The Hobbit [2]."),
        ("Who was the mother of Mary Shelley?", "Mary Wollstonecraft", "The mother of Mary Shelley was {} [2]."),
        ("In which country was the company IKEA founded?", "Sweden", "The company IKEA was founded in {} [2]."),
        ("Of which country is Prague the capital?", "Czechia", "Prague is the capital of {} [2]."),
        ("On which river does the city of Bonn lie?", "Rhine", "The city of Bonn lies on the {} [2]."),
        ("How high is Denali?", "6,190 metres", "Denali is {} high [2]."),
        (
            "Which architect designed the Chrysler Building?",
            "William Van Alen",
            "{} designed the Chrysler Building [2].",
        ),
        ("How many moons has it?", "two", "The answer to “How many moons has it?” is {} [2]."),
    ],
)
def test_a_fact_is_told_as_a_sentence_and_read_back_from_a_text(query, answer, told):
    assert write_fact(query, answer, 2) == told.format(answer)
    text = f"Dr. Bar was born in Ulm [1]. {write_fact(query, answer, 2)} It is so."
    assert find_stated(query, [text, "Else."]) == answer
    assert mentions(query, [text])
    assert not mentions(query, ["Else."])
    assert mentions(query, [write_fact(query, None)])
