"""SearChain's paper preset does what the authors' client does: 150 scripts, the same replies given to both."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from answering import Asked
from authors_client import DEPARTURES, NO_ANSWERS, UNSOLVED, AuthorsClient, Course, Feedback, Script, Step, Turn
from fakes import ListReader, ListRetriever

from questree.programs import SearChain, SearChainSettings
from questree.programs.tree import without_repeats

SCRIPTS = 150
SUBJECTS = ("Kafka", "the #1 hit of 1985", "Mozart", "Prague <2>", "the Vltava", "Earth", "a-ha", "Álvaro Siza")
NAMES = ("Art", "Earth", "Prague", "Prague, Bohemia", "the Czech city Prague", "Franz Kafka", "Kafka", "Vienna")
SPANS = (*NAMES, "art", "Kaf", "Pra", "PRAGUE.", "", "", "the", "1985", "born in Prague")
WORDS = ("river", "castle", "novel", "winter", "bridge", "music", "garden", "silver", "planet", "horse")


def script(number: int) -> Script:
    """Return a script: a few queries in two wordings each, and replies that plan, correct, complete and repeat."""
    chance = random.Random(number)
    long = chance.random() < 0.3
    queries = [
        query for subject in chance.sample(SUBJECTS, 4) for query in (f"What of {subject}?", f"{subject}: what?")
    ]
    theta = chance.choice([1.5, 0.0])

    def phrase() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(3, 8)))

    def answer() -> str | None:
        known = phrase() if long else chance.choice(NAMES)
        return chance.choices([known, None, UNSOLVED, chance.choice(NO_ANSWERS)], [74, 18, 4, 4])[0]

    def steps(most: int) -> tuple[Step, ...]:
        return tuple((chance.choice(queries), answer()) for _ in range(chance.randint(0, most)))

    def helps() -> str:
        return chance.choices(["the span", "as before", "not at all", chance.choice(NAMES)], [55, 17, 6, 22])[0]

    def score() -> float:
        return chance.choice([theta, theta + 0.01, theta - 0.01, chance.uniform(-4, 6), 9.0])

    rounds = chance.choice([1, 2, 3, 5, 5, 5])
    return Script(
        turns=(Turn(steps(6) or steps(6)), *(Turn(steps(4), helps()) for _ in range(rounds - 1))),
        passages={query: f"{phrase()}." if long else f"{chance.choice(NAMES)} it is." for query in queries},
        spans={query: (chance.choice(SPANS), score()) for query in queries},
        meanings={query: place // 2 for place, query in enumerate(queries)},
        answer_style="long" if long else "short",
        theta=theta,
        alpha=chance.choice([0.2, 0.35, 0.5]),
    )


def ours(script: Script, answering) -> Course:
    """Return what our paper preset makes of a script; the feedback is read from the prompts that were sent."""
    course, turns = Course(), iter(script.turns)

    def reply(asked: Asked) -> dict[str, object]:
        if asked.wants == "final_content":
            course.told = [(step["query"], step["answer"]) for step in asked.given("steps")]
            return {"final_content": "", "answer": ""}
        course.chains += 1
        turn = next(turns)
        steps = [{"query": query, "answer": answer} for query, answer in turn.steps]
        if asked.wants == "chain":
            return {"chain": steps}
        course.feedback.append(feedback_in(asked))
        return {"new_answer": turn.answer_to(course.feedback[-1]) or "", "new_steps": steps}

    answering(reply)
    settings = SearChainSettings(preset="paper", max_rounds=len(script.turns), theta=script.theta, alpha=script.alpha)
    retriever = ListRetriever(script.passages)
    program = SearChain(retriever, ListReader(script.spans), settings, duplicates=SameMeaning(script.meanings))
    prediction = program(question="What is it?", answer_style=script.answer_style)
    assert prediction.failure is None
    course.looked_up = retriever.queries
    course.sources = [node.source for node in without_repeats(prediction.tree.last_path())]
    return course


def feedback_in(asked: Asked) -> Feedback:
    """Return the feedback that a prompt gives."""
    answer, (passage,) = asked.given("your_answer"), asked.given("passages")
    kind = "complete" if answer is None else "correct"
    text = passage.split(" | ", 1)[1]
    return Feedback(kind, asked.given("query"), answer, asked.given("reference_answer"), text)


class SameMeaning:
    """A duplicate check that knows what the queries of a script mean."""

    def __init__(self, meanings: dict[str, int]):
        self.meanings = meanings

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        same = [index for index, other in enumerate(seen) if self.meanings.get(other) == self.meanings.get(query)]
        return same[0] if same else None


@pytest.mark.parametrize("first", range(0, SCRIPTS, 30))
def test_the_same_queries_feedback_and_stops(first, answering):
    for number in range(first, first + 30):
        assert ours(script(number), answering) == AuthorsClient(script(number), DEPARTURES).run(), number


def test_the_scripts_reach_everything_that_they_should():
    """Count in how many scripts each departure occurs, and each kind of course; without one, nothing differs."""
    departed, met = Counter[str](), Counter[str]()
    for number in range(SCRIPTS):
        client = AuthorsClient(script(number), DEPARTURES)
        course, here = client.run(), +client.departed
        departed.update(here.keys() or ["nowhere"])
        assert here or course == AuthorsClient(script(number)).run()
        settled = "settled" if course.chains < len(script(number).turns) else "to the last round"
        met.update({settled, *(feedback.kind for feedback in course.feedback)})
    assert min(departed[name] for name in DEPARTURES) >= 5, departed
    assert departed["nowhere"] >= SCRIPTS / 2
    assert min(met[kind] for kind in ("settled", "to the last round", "correct", "complete")) >= SCRIPTS / 4
