"""Evidence chain: what it asks, what it cites, and when it stops."""

from typing import Any

import dspy
import pytest

from questree.programs.demonstrations import is_exemplary
from questree.programs.evidence_chain import EvidenceChain, EvidenceChainSettings
from questree.retrieval import Passage, Retriever

Q = "Where did the painter of The Red Barge die?"
BARGE = Passage(
    id="1", title="The Red Barge", text="The Red Barge is a painting of 1931. It was painted by Brenka Ostal."
)
OSTAL = Passage(id="2", title="Brenka Ostal", text="Brenka Ostal was a Velian painter. She died in Orvane in 1987.")
OTHER = Passage(id="3", title="Barge", text="A barge is a boat with a flat bottom.")
PAINTED = {"fact": "The Red Barge was painted by Brenka Ostal.", "passage": 1, "quote": "painted by Brenka Ostal"}
DIED = {"fact": "Brenka Ostal died in Orvane.", "passage": 2, "quote": "She died in Orvane"}
FOUND = {Q: [BARGE, OTHER], "Brenka Ostal death": [OSTAL, OTHER]}


class Found(Retriever):
    name = fingerprint = "found"

    def __init__(self, found: dict[str, list[Passage]] = FOUND) -> None:
        self.found, self.queries = found, list[str]()

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        self.queries += queries
        return [self.found.get(query, [])[:k] for query in queries]


def reply(*facts: Any, missing: Any = (), answer: str = "Orvane", sure: bool = True, comparison: Any = ()) -> Any:
    return {
        "evidence": list(facts),
        "comparison": list(comparison),
        "searches": list(missing),
        "answer": answer,
        "sure": str(sure),
    }


def ask(retriever: Retriever | None = None, **settings: Any) -> Any:
    return EvidenceChain(retriever or Found(), EvidenceChainSettings(**settings))(question=Q)


def test_one_call_if_nothing_is_missing(scripted):
    engine = scripted(reply(PAINTED, DIED))
    prediction = ask(Found({Q: [BARGE, OSTAL]}))
    assert prediction.final_content == (
        "The Red Barge was painted by Brenka Ostal [1]. Brenka Ostal died in Orvane [2]. So the answer is: Orvane."
    )
    assert (prediction.answer, prediction.rests_on) == ("Orvane", "passages")
    assert [passage.title for passage in prediction.references] == ["The Red Barge", "Brenka Ostal"]
    assert len(engine.prompts) == 1
    steps = [(node.answer, node.source, node.support) for node in prediction.tree.nodes[1:]]
    assert steps == [
        ("Brenka Ostal", "completed", "It was painted by Brenka Ostal."),
        ("Orvane", "completed", "She died in Orvane in 1987."),
    ]


def test_what_is_missing_is_searched_for_and_the_next_call_sees_facts_and_proofs(scripted):
    engine = scripted(reply(PAINTED, missing=["Brenka Ostal death"]), reply(PAINTED, DIED))
    retriever = Found()
    prediction = ask(retriever)
    assert retriever.queries == [Q, "Brenka Ostal death"]
    second = engine.prompts[1]
    assert '["The Red Barge was painted by Brenka Ostal. [1]"]' in second
    assert "[1] The Red Barge" in second
    assert "[2] Brenka Ostal" in second
    assert "[3] Barge" in second
    assert '["Brenka Ostal death"]' in second
    assert "\n1\n" in second.split("searches_left")[1]
    assert prediction.answer == "Orvane"
    assert len(prediction.references) == 2


def test_a_fact_that_was_proven_before_needs_no_quote_again(scripted):
    again = {"fact": f"{PAINTED['fact']} [1]", "passage": 0, "quote": ""}  # copied with its tag
    unproven = {**DIED, "passage": 1, "quote": "The Red Barge is a painting"}
    engine = scripted(reply(PAINTED, unproven, missing=["Brenka Ostal death"]), reply(again, DIED))
    prediction = ask()
    assert "Brenka Ostal died in Orvane. (not in its quote)" in engine.prompts[1]
    assert prediction.final_content.startswith("The Red Barge was painted by Brenka Ostal [1]. Brenka Ostal died")


def test_queries_are_searched_for_once(scripted):
    scripted(reply(PAINTED, missing=[Q.upper(), "none"]))
    retriever = Found()
    ask(retriever)
    assert retriever.queries == [Q]


def test_it_stops_when_a_search_brings_nothing_that_was_not_read(scripted):
    engine = scripted(reply(PAINTED, missing=["boats"], sure=False))
    ask(Found({Q: [BARGE, OTHER], "boats": [OTHER]}))
    assert len(engine.prompts) == 1


def test_a_search_that_proved_nothing_is_made_again_in_other_words(scripted):
    recalled = {**DIED, "passage": 0, "quote": ""}
    engine = scripted(
        reply(PAINTED, recalled, missing=["death"]), reply(PAINTED, recalled, missing=["boats"]), reply(DIED)
    )
    prediction = ask(Found({Q: [BARGE], "death": [OTHER], "boats": [OSTAL]}))
    assert len(engine.prompts) == 3
    assert prediction.rests_on == "passages"


def test_copies_of_a_passage_are_shown_once(scripted):
    copy = OSTAL.model_copy(update={"id": "9"})
    engine = scripted(reply(PAINTED, missing=["Brenka Ostal death"]), reply(PAINTED, DIED))
    ask(Found({Q: [BARGE], "Brenka Ostal death": [OSTAL, copy]}))
    assert engine.prompts[1].count("Velian painter") == 1


@pytest.mark.parametrize(
    ("fact", "mark"),
    [
        ({**DIED, "passage": 1}, "[1]"),  # the wrong number: the quote tells the passage
        ({**DIED, "quote": "she passed away in Orvane"}, ""),
        ({**DIED, "quote": "Brenka Ostal"}, ""),
        ({**DIED, "passage": 0, "quote": ""}, ""),
        ({**DIED, "passage": 77}, "[1]"),
    ],
)
def test_a_mark_stands_only_where_the_quote_does(scripted, fact: dict[str, Any], mark: str):
    scripted(reply(fact))
    prediction = ask(Found({Q: [BARGE, OSTAL]}), max_calls=1)
    told = "Brenka Ostal died in Orvane"
    assert prediction.final_content.startswith(f"{told} {mark}." if mark else f"From memory: {told}.")
    assert prediction.rests_on == ("passages" if mark else "memory")


def test_a_fact_whose_quote_proves_nothing_is_searched_for(scripted):
    scripted(reply({**DIED, "passage": 1, "quote": "she lived there"}), reply(DIED))
    retriever = Found({Q: [OSTAL], DIED["fact"]: [OTHER]})
    assert ask(retriever).references[0].title == "Brenka Ostal"
    assert retriever.queries == [Q, DIED["fact"]]


def test_a_fact_that_says_more_than_its_quote_has_no_mark_and_costs_no_search(scripted):
    scripted(reply({"fact": "Brenka Ostal died in Orvane, aged 76.", "passage": 1, "quote": "She died in Orvane"}))
    prediction = ask(retriever := Found({Q: [OSTAL]}))
    assert prediction.final_content.startswith("From memory: Brenka Ostal died in Orvane, aged 76.")
    assert retriever.queries == [Q]


def test_the_calls_are_bounded_and_the_last_one_is_told_so(scripted):
    engine = scripted(reply(missing=["Brenka Ostal death"]), reply(missing=["boats"], sure=False))
    prediction = ask(max_calls=2)
    assert "\n0\n" in engine.prompts[1].split("searches_left")[1]
    assert prediction.final_content == "A guess: Orvane."


@pytest.mark.parametrize(("sure", "answer"), [(False, ""), (True, "Orvane")])
def test_abstaining_leaves_a_guess_out(scripted, sure: bool, answer: str):
    scripted(reply(PAINTED, sure=sure))
    assert ask(abstain=True).answer == answer


def test_compared_values_decide_if_they_are_proven(scripted):
    facts = [
        {"fact": "The Red Barge is of 1931.", "passage": 1, "quote": "is a painting of 1931"},
        {"fact": "Brenka Ostal died in 1987.", "passage": 2, "quote": "died in Orvane in 1987"},
    ]
    compared = ["latest", "The Red Barge: 1931", "Brenka Ostal: 1987"]
    scripted(reply(*facts, answer="The Red Barge", comparison=compared))
    assert ask(Found({Q: [BARGE, OSTAL]})).answer == "Brenka Ostal"
    scripted(reply(facts[0], answer="The Red Barge", comparison=compared))
    assert ask(Found({Q: [BARGE, OSTAL]})).answer == "The Red Barge"


def test_a_confirmation_may_ask_for_one_more_search(scripted):
    lacks = {"lacking": "Brenka Ostal death", "follows": "False"}
    engine = scripted(reply(PAINTED), lacks, reply(PAINTED, DIED))
    assert ask(confirm=True).answer == "Orvane"
    assert "The Red Barge: It was painted by Brenka Ostal." in engine.prompts[1]


@pytest.mark.parametrize("found", [[], [OTHER.model_copy(update={"id": str(n)}) for n in range(10)]])
def test_without_evidence_it_still_answers(scripted, found: list[Passage]):
    scripted(reply(answer="Orvane", sure=False))
    prediction = ask(Found({Q: found}))
    assert prediction.final_content == "A guess: Orvane."
    assert prediction.references == []


def test_a_reply_of_a_hundred_facts_is_cut(scripted):
    scripted(reply(*({**DIED, "fact": f"Brenka Ostal died in Orvane{' again' * n}."} for n in range(100))))
    assert len(ask(Found({Q: [OSTAL]})).tree.nodes) == 21


@pytest.mark.parametrize(("passage", "exemplary"), [(2, True), (1, False)])
def test_a_reading_that_numbers_a_passage_wrongly_is_no_demonstration(scripted, passage: int, exemplary: bool):
    scripted(reply({**DIED, "passage": passage}))
    with dspy.context(trace=[]):
        ask(Found({Q: [BARGE, OSTAL]}))
        (step,) = dspy.settings.trace
    assert is_exemplary(step) is exemplary
