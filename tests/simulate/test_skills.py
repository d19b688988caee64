"""What the simulated LM answers in each prompt: from what stands there, by the steps of the question, by its traits."""

from typing import Any

import dspy
import pytest
from house import prompts
from tiny_world import BLANK, OLDER, PASSAGES, RIVER, SURE, ask

from questree.common.text import text_or_none
from questree.lm.guard import adapter_named
from questree.signatures.answers import AnswerFromPassages, AnswerFromThoughts
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
from questree.signatures.searches import CondensePassages, WriteNextThought, WriteOrSearch, WriteSearchQuery
from questree.signatures.subquestions import (
    AnswerSubquestionFromPassages,
    AskFollowUp,
    JudgeSteps,
    PlanSteps,
    SplitQuestion,
)
from questree.simulate import Traits
from questree.simulate.phrases import find_stated, mentions, write_fact

FAIR = BLANK.model_copy(
    update={"misjudges": 0, "misjudges_shown": 0, "overlooks": 0, "overlooks_shown": 0, "asks": 1, "asks_shown": 1}
)
PATH = ["The Metamorphosis", "Franz Kafka", "Prague"]
QUERIES = [step.question for step in RIVER.resolved_steps()]
AUTHOR, BIRTH, FLOWS = QUERIES
SOLVED = [{"query": AUTHOR, "answer": "Franz Kafka"}]
ALL = [*SOLVED, {"query": BIRTH, "answer": "Prague"}, {"query": FLOWS, "answer": "Vltava"}]
FACTS = [write_fact(step["query"], step["answer"], n) for n, step in enumerate(ALL, start=1)]


def fair(**update: Any) -> Traits:
    return FAIR.model_copy(update=update)


def numbered(*titles: str) -> list[str]:
    return [f"[{n}] {PASSAGES[title].shown()}" for n, title in enumerate(titles, start=1)]


def replied(signature: Any, traits: Traits = FAIR, *, question: Any = RIVER, **given: Any) -> dspy.Prediction:
    """One call of the signature about a question, with those of the inputs that it takes."""
    about = {"question": question.question, "answer_style": question.style}
    how = {name: given.pop(name) for name in ("adapter", "demos") if name in given}
    taken = {name: value for name, value in (about | given).items() if name in signature.input_fields}
    return ask(signature, traits, **how, **taken)


def review(traits: Traits, *titles: str, signature: Any = ReviewParagraphs, **more: Any) -> dspy.Prediction:
    return replied(signature, traits, passages=[PASSAGES[title].shown() for title in titles], **more)


TWO = numbered(*PATH[:2])
FOUND = f"[Search({AUTHOR}) → {TWO[0]}]"
GIVEN = {
    **{"query": BIRTH, "your_answer": "Vienna", "reference_answer": "Prague", "topic": "people", "count": 3},
    **{"solved": SOLVED, "passages": TWO, "thoughts": [], "written": [], "sentence": write_fact(BIRTH, "x")},
    **{"steps": SOLVED, "assertions": [{"answer": "Elbe", "references": [1]}]},
}
"""What a prompt holds where a test does not say otherwise."""


@pytest.mark.parametrize(
    ("signature", "given", "expected"),
    [
        (SplitQuestion, {}, {"subquestions": [step.question for step in RIVER.steps]}),
        (PlanSteps, {}, {"plan": [step.question for step in RIVER.steps]}),
        (AskFollowUp, {"solved": []}, {"follow_up": AUTHOR}),
        (AskFollowUp, {}, {"follow_up": BIRTH}),
        (AskFollowUp, {"solved": ALL}, {"follow_up": None}),
        (JudgeSteps, {}, {"complete": False}),
        (JudgeSteps, {"solved": ALL}, {"complete": True}),
        (AnswerSubquestionFromPassages, {}, {"query_answer": "Prague", "references": [2]}),
        (AnswerSubquestionFromPassages, {"query": FLOWS}, {"query_answer": None, "references": []}),
        (WriteNextThought, {}, {"thought": FACTS[0]}),
        (WriteSearchQuery, {}, {"query": FLOWS}),
        (WriteOrSearch, {}, {"search": AUTHOR, "answer": None}),
        (
            WriteOrSearch,
            {"written": [f"To be looked up: {AUTHOR}", FOUND]},
            {"continuation": write_fact(BIRTH, None), "search": BIRTH},
        ),
        (CondensePassages, {"written": [write_fact(AUTHOR, "Franz Kafka")]}, {"finding": " ".join(FACTS[:2])}),
        (CondensePassages, {"written": FACTS[:1]}, {"finding": FACTS[1]}),
        (AnswerFromThoughts, {"thoughts": [write_fact(s["query"], s["answer"]) for s in ALL]}, {"answer": "Vltava"}),
        (AnswerFromPassages, {"passages": [p.shown() for p in PASSAGES.values()]}, {"answer": "Vltava"}),
        (AnswerFromPassages, {"passages": TWO[:1]}, {"answer": "Franz Kafka"}),
    ],
)
def test_each_step_is_answered_from_what_stands_in_the_prompt(signature: Any, given: Any, expected: Any) -> None:
    reply = replied(signature, fair(completes=0.0), **GIVEN | given)
    assert {name: None if reply[name] == "null" else reply[name] for name in expected} == expected


@pytest.mark.parametrize("form", ["chat", "json", "baml", "xml"])
def test_every_signature_of_the_package_has_a_reply_that_parses(form: str) -> None:
    for signature in prompts().values():
        reply = replied(signature, SURE, adapter=adapter_named(form), **GIVEN)
        assert set(signature.output_fields) <= set(reply.keys()), signature.__name__


def test_a_path_is_rejected_searched_on_or_accepted_by_what_it_holds() -> None:
    rejected, searched, accepted = review(FAIR, "Buddenbrooks"), review(FAIR, *PATH[:2]), review(FAIR, *PATH)
    assert (rejected.relevant, rejected.supported, text_or_none(rejected.answer)) == (False, False, None)
    assert (searched.relevant, searched.supported, text_or_none(searched.answer)) == (True, False, None)
    assert searched.next_query == FLOWS
    assert (accepted.relevant, accepted.supported, accepted.answer) == (True, True, "Vltava")
    assert review(FAIR, "Thomas Mann", "Franz Kafka", question=OLDER).answer == "yes"
    assert "Franz Kafka" in review(FAIR, *PATH[:1], signature=ReviewParagraphsCoT).thoughts
    assert review(fair(asks=0.0), *PATH[:1]).next_query == RIVER.question


def test_traits_are_rates_of_mistakes_and_demonstrations_of_several_kinds_lower_them() -> None:
    def demo(titles: list[str], relevant: bool, supported: bool) -> dict[str, Any]:
        given = {"question": RIVER.question, "answer_style": "short", "passages": [PASSAGES[t].shown() for t in titles]}
        judged = {"relevant": relevant, "supported": supported, "analysis": ""}
        return {**given, **judged, "answer": "x", "next_query": "y"}

    def mistakes(demos: list[dict[str, Any]], overlooks: float = 0.5) -> int:
        traits = [fair(seed=seed, overlooks=overlooks, misjudges=0.5) for seed in range(30)]
        return sum(not review(one, "Prague", demos=demos).relevant for one in traits)

    kinds = [demo(PATH, True, True), demo(PATH[:1], True, False), demo(["Buddenbrooks"], False, False)]
    assert mistakes(kinds) == 0 < mistakes([kinds[0]] * 3) < mistakes([])
    assert 0 < mistakes([], overlooks=0.2) < mistakes([], overlooks=0.5)


def test_too_little_is_taken_for_enough_only_by_a_model_that_has_an_answer() -> None:
    assert not review(fair(misjudges=1.0), "Buddenbrooks").supported
    for knows, invents, answer in ((0.0, 0.0, "Prague"), (1.0, 0.0, "Vltava"), (0.0, 1.0, "Trave")):
        hasty = fair(misjudges=1.0, knows=knows, invents=invents)
        assert review(hasty, *PATH[:2]).answer == answer  # where it remembers none, the last that was read


@pytest.mark.parametrize(
    ("completes", "author", "city"), [(1.0, "Franz Kafka", "Prague"), (0.0, "Thomas Mann", "Lübeck")]
)
def test_what_is_missing_is_recalled_or_invented(completes: float, author: str, city: str) -> None:
    traits = fair(completes=completes)
    missing = replied(CompleteParagraphs, traits, passages=[PASSAGES[PATH[0]].shown()]).information
    assert missing == f"Franz Kafka was born in {city}."
    assert replied(RecallPassage, traits).passage.startswith(f"{author} wrote The Metamorphosis. {author} was born in ")
    assert completes < 1 or replied(RecallPassage, traits).passage.endswith("Vltava flows through Prague.")


def test_a_question_that_the_world_lacks_is_reviewed_by_titles() -> None:
    unknown = "Who captains the ship in Moby-Dick?"
    for passages in (["The Sun | It shines.", "Moby-Dick | A whale."], []):
        judged = ask(ReviewParagraphs, FAIR, question=unknown, answer_style="short", passages=passages)
        assert (judged.relevant, judged.supported, judged.next_query) == (bool(passages), False, unknown)


def test_the_passages_of_the_steps_are_kept_by_their_printed_numbers() -> None:
    given, others = numbered("Buddenbrooks", "Prague", "Thomas Mann", "The Metamorphosis"), numbered("Lübeck")
    for passages, kept in ((given, [2, 4]), (others, [])):
        assert replied(FilterKnowledge, passages=passages).kept == kept
        judged = replied(JudgePassages, passages=passages).judgements
        assert [one.number for one in judged] == list(range(1, len(passages) + 1))
        assert [one.number for one in judged if one.useful] == kept
    stubborn = fair(invents=1.0, trusts=0.0)
    assert replied(FilterKnowledge, stubborn, passages=given).kept == []  # its memory says otherwise
    assert replied(FilterKnowledgeOnTopic, stubborn, passages=given, topic="geography").kept == [2, 4]


def test_a_topic_is_named_by_what_is_asked() -> None:
    topics = [ask(NameTopic, question=words).topic for words in (RIVER.question, "When did it end?", "Why?")]
    assert topics == ["geography", "history", "general knowledge"]


def said(answer: str, *references: int) -> dict[str, Any]:
    return {"answer": answer, "references": list(references)}


@pytest.mark.parametrize("signature", [AnswerWithKnowledge, FuseParagraphs])
def test_passages_that_hold_every_step_give_the_answer_and_are_marked(signature: Any) -> None:
    found = replied(signature, BLANK, passages=numbered("Prague", *PATH[:2]))
    assert found.answer == "Vltava"
    assert found.final_content == (
        "The Metamorphosis is a story by Franz Kafka that appeared in Leipzig in 1915 [2]. "
        "Franz Kafka, born in Prague in 1883, worked for an insurance company [3]. "
        "Prague lies on the Vltava and has more than a million inhabitants [1]."
    )


def test_where_passages_are_silent_memory_fills_in() -> None:
    known = replied(AnswerWithKnowledge, SURE, passages=TWO)
    assert (known.answer, "[3]" in known.final_content) == ("Vltava", False)
    assert replied(AnswerWithKnowledge, fair(invents=1.0), passages=TWO).answer == "Trave"
    assert "stays open" in replied(AnswerWithKnowledge, BLANK, passages=TWO).final_content


def test_most_assertions_win_unless_passages_say_otherwise_and_are_told_with_their_marks() -> None:
    assertions = [said("Trave", 1), said("Trave", 2), said("Vltava", 1, 2, 3)]
    assert replied(FuseAnalyses, BLANK, assertions=assertions).answer == "Trave"
    assert replied(FuseEvidence, BLANK, assertions=assertions, passages=numbered(*PATH)).answer == "Vltava"
    assert replied(FuseEvidence, BLANK, assertions=assertions, passages=TWO).answer == "Trave"
    content = replied(FuseAnalyses, BLANK, assertions=[said("Trave", 1), said("Vltava", 2, 3), said("Vltava", 4)])
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
        ("Which architect designed the Chrysler Building?", "Van Alen", "{} designed the Chrysler Building [2]."),
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
