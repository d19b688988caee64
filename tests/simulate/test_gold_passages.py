"""Passages of one title: where the gold ones are known, the others tell the simulated model nothing."""

from dataclasses import replace

import pytest
from tiny_world import PASSAGES, RIVER

from questree.data import Paragraph, Question
from questree.simulate import Mind, Traits, World
from questree.simulate.asked import Asked
from questree.simulate.prompt import Prompt, read_shown
from questree.simulate.world import WorldFact, find_answer

SURE = Traits(knows=0, reads=1, misreads=0, malformed=0)
GOLD = [PASSAGES[title] for title in RIVER.gold_titles]
OTHER = "Prague | Smetana wrote of the Vltava, long before he lived in Prague."
RIVER_OF_PRAGUE = RIVER.resolved_steps()[-1].question
BY_TITLE = RIVER.model_copy(update={"gold_passages": (), "paragraphs": ()})
BY_PARAGRAPH = BY_TITLE.model_copy(
    update={"paragraphs": tuple(Paragraph(title=one.title, text=one.text, is_supporting=True) for one in GOLD)}
)
BY_FINGERPRINT = BY_TITLE.model_copy(update={"gold_passages": BY_PARAGRAPH.known_gold()})
BY_ID = BY_TITLE.model_copy(update={"gold_passages": tuple(one.id for one in GOLD)})


@pytest.mark.parametrize("question", [BY_PARAGRAPH, BY_FINGERPRINT])
def test_another_passage_of_a_gold_title_holds_nothing(question: Question) -> None:
    mind = Mind(World([question]), SURE)
    assert mind.reads(RIVER_OF_PRAGUE, PASSAGES["Prague"].shown()).span == "Vltava"
    assert not mind.useful(question.question, OTHER)
    assert mind.reads(RIVER_OF_PRAGUE, OTHER).span == ""


def test_an_answer_is_read_with_its_own_article() -> None:
    hague = WorldFact("Where was Huygens born?", ("The Hague",), None, (), "where")
    assert find_answer(hague, "Huygens | Huygens lived in the Hague. He was born in The Hague.") == "the Hague"
    assert find_answer(hague, "Huygens | He was born in Hague.") == "Hague"
    assert find_answer(replace(hague, answers=("Hague",)), "Huygens | He was born in The Hague.") == "Hague"


@pytest.mark.parametrize("question", [BY_TITLE, BY_ID])
def test_where_a_prompt_cannot_show_which_passage_is_gold_the_title_stands_for_it(question: Question) -> None:
    mind = Mind(World([question]), SURE)
    assert mind.reads(RIVER_OF_PRAGUE, OTHER).span
    assert mind.useful(question.question, OTHER)
    assert mind.fingerprint == Mind(World([BY_TITLE]), SURE).fingerprint  # stored runs go on


def test_a_world_is_of_questions_with_answers_and_its_fingerprint_is_what_it_was() -> None:
    absent = RIVER.model_copy(update={"id": "absent", "question": "Who knows?", "answers": ()})
    assert World([absent]).questions == ()
    plain = Question(id="q", task="t", question="Who?", answers=("Ada",), style="short", split="train")
    assert World([plain, absent]).fingerprint == "377fc575e3c97bcc"  # stored runs go on


def test_a_whole_question_is_read_when_all_of_its_gold_passages_are_there() -> None:
    bare = BY_PARAGRAPH.model_copy(update={"steps": ()})
    asked = Asked(Mind(World([bare]), SURE), Prompt("chat", bare.question, values={"question": bare.question}))
    texts = [one.shown() for one in GOLD]
    assert asked.read_whole(read_shown(texts)) == (bare.answers[0], len(texts))
    others = [OTHER if text.startswith("Prague") else text for text in texts]
    assert asked.read_whole(read_shown(others)) == (None, None)
