"""ITER-RETGEN and IRCoT search for what FlashRAG's do and show what they show: 100 scripts each, replies alike."""

import random
from collections import Counter

import pytest
from answering import Asked
from flashrag_client import DEPARTURES, Course, FlashRAG, Script, Sentence, text_of

from questree import program
from questree.retrieval import Passage, Retriever

SCRIPTS = 100
SUBJECTS = ("Kafka", "J. R. R. Tolkien", "Prague", "the Vltava", "Dr. Smith", "a-ha", "Álvaro Siza", "Washington, D.C.")
RELATIONS = ("was born near", "is a friend of", "flows through", "wrote about", "lies west of", "is where one meets")
OPENINGS = ("Thus,", "So", "Therefore", "Hence", "That is,")


def fact(chance: random.Random) -> str:
    first, second = chance.sample(SUBJECTS, 2)
    return (
        f"{first[0].upper()}{first[1:]} {chance.choice(RELATIONS)} the house of {second} since {chance.randint(1, 99)}."
    )


def sentence(chance: random.Random) -> Sentence:
    """Return a sentence of some kind."""
    kind = chance.choices(["states", "concludes", "answers", "answers otherwise"], [70, 15, 10, 5])[0]
    if kind == "concludes":
        return Sentence(f"{chance.choice(OPENINGS)} {fact(chance)}", "concludes")
    if kind == "answers":
        return Sentence(f"So the answer is: number {chance.randint(1, 99)}.", "answers")
    if kind == "answers otherwise":
        return Sentence(f"The right answer is number {chance.randint(1, 99)}.", "answers otherwise")
    return Sentence(fact(chance))


def script(number: int) -> Script:
    chance = random.Random(number)
    replies = [
        tuple(sentence(chance) for _ in range(chance.choices([0, 1, 2], [4, 76, 20])[0]))
        for _ in range(chance.randint(1, 6))
    ]
    words = chance.choice(["Which river is near", "Near what was born", "Name the one near"])
    return Script(f"{words} {chance.choice(SUBJECTS)}?", tuple(replies), k=chance.randint(1, 4), corpus=24)


class Ranked(Retriever):
    """Finds what a script says."""

    name = fingerprint = "ranked"

    def __init__(self, script: Script):
        self.script, self.queries = script, list[str]()

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        assert k == self.script.k
        self.queries += queries
        rankings = [self.script.ranking(query) for query in queries]
        return [[Passage(id=id, title=id, text=id, score=score) for id, score in one] for one in rankings]


def ours(name: str, script: Script, answering) -> Course:
    """Return what our program makes of a script; the passages are read from the prompts that were sent."""
    course, replies = Course(), iter(script.replies)

    def reply(asked: Asked) -> dict[str, str]:
        if name == "ircot" and asked.wants == "final_content":
            return {"final_content": "So.", "answer": "a", "sure": "True"}
        course.shown.append(list(asked.titles))
        told = text_of(next(replies))
        content, _, answer = told.rpartition(" ")
        return {"thought": told} if name == "ircot" else {"final_content": content, "answer": answer, "sure": "True"}

    answering(reply)
    most = {"ircot": "max_thoughts", "iter-retgen": "turns"}[name]
    retriever = Ranked(script)
    prediction = program(name, retriever=retriever, k=script.k, **{most: len(script.replies)})(question=script.question)
    assert prediction.failure is None
    course.queries = retriever.queries
    return course


@pytest.mark.parametrize(("name", "way"), [("iter-retgen", FlashRAG.iter_retgen), ("ircot", FlashRAG.ircot)])
def test_it_asks_and_shows_what_flashrag_s_does(name, way, answering):
    for number in range(SCRIPTS):
        assert ours(name, script(number), answering) == way(FlashRAG(script(number), DEPARTURES)), number


def test_the_scripts_reach_everything_that_they_should():
    """Each departure occurs in several scripts; where none does, FlashRAG's own way is the same as ours."""
    departed = Counter[str]()
    for number in range(SCRIPTS):
        for way in (FlashRAG.iter_retgen, FlashRAG.ircot):
            client = FlashRAG(script(number), DEPARTURES)
            course, here = way(client), +client.departed
            departed.update(here.keys() or ["nowhere"])
            assert here or course == way(FlashRAG(script(number)))
    assert set(departed) == {*DEPARTURES, "nowhere"}
    assert min(departed.values()) >= 4, departed
