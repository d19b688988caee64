"""Each trait moves what it names."""

from typing import Any

import dspy
from fakes import GivingRetriever
from tiny_world import BLANK, FIRST, OLDER, PASSAGES, RIVER, SURE, ask, question

from questree.data import Question
from questree.programs import SearChain
from questree.retrieval import Passage
from questree.signatures.chain_of_query import (
    CompleteChain,
    CorrectChain,
    PlanChain,
    PlannedStep,
    PlanSureChain,
    Step,
    TraceAnswer,
)
from questree.signatures.reader import ReadPassage
from questree.signatures.verdict import CheckStep
from questree.simulate import Traits, simulated_lm

CHAIN = [
    Step(query="Who wrote The Metamorphosis?", answer="Franz Kafka"),
    Step(query="Where was Franz Kafka born?", answer="Prague"),
    Step(query="Which river flows through Prague?", answer="Vltava"),
]
DEMOS = [
    {"question": f"Question {n}?", "answer_style": "short", "chain": [Step(query=f"Who made thing {n}?"), CHAIN[1]]}
    for n in range(5)
]


def plan(traits: Traits, question: str = RIVER.question, demos: list[Any] | None = None) -> list[Step]:
    chain: list[Step] = ask(PlanSureChain, traits, demos=demos, question=question, answer_style="short").chain
    return chain


def more(**update: Any) -> Traits:
    return SURE.model_copy(update=update)


def test_a_model_that_knows_everything_answers_every_step() -> None:
    assert plan(SURE) == CHAIN


def test_a_model_that_knows_and_invents_nothing_leaves_answers_open_and_describes_what_it_lacks() -> None:
    chain = plan(BLANK)
    assert [step.answer for step in chain] == [None] * 3
    assert chain[1].query == "Where was the one who wrote The Metamorphosis born?"


def test_a_plan_numbers_earlier_answers_and_tells_what_is_sure_from_what_is_guessed() -> None:
    def planned(traits: Traits) -> list[PlannedStep]:
        chain: list[PlannedStep] = ask(PlanChain, traits, question=RIVER.question, answer_style="short").planned_chain
        return chain

    queries = [step.question for step in RIVER.steps]
    sure = [PlannedStep(query=q, recalled=step.answer, sure=True) for q, step in zip(queries, CHAIN, strict=True)]
    assert planned(SURE) == sure
    guessed = planned(BLANK.model_copy(update={"completes": 1.0}))
    assert [(step.query, step.sure) for step in guessed] == [(query, False) for query in queries]
    assert [step.recalled for step in guessed] == [step.answer for step in CHAIN]
    blank = planned(BLANK.model_copy(update={"completes": 0.0}))
    assert [(step.recalled, step.sure) for step in blank] == [(None, False)] * len(queries)


def test_a_verdict_is_on_what_is_read_and_names_its_passage() -> None:
    given = [f"[{n}] {PASSAGES[title].shown()}" for n, title in enumerate(["Prague", "Franz Kafka"], start=1)]

    def verdict(proposed: str, traits: Traits = BLANK, passages: list[str] = given) -> tuple[Any, ...]:
        given = {"query": CHAIN[1].query, "proposed_answer": proposed, "passages": passages}
        reply = ask(CheckStep, traits, question="", **given)
        return reply.passage_number, reply.found, reply.verdict, reply.remembered

    assert verdict("") == verdict("Prague, Bohemia") == (2, "Prague", "supports", "")
    assert verdict("Vienna") == (2, "Prague", "contradicts", "")
    assert verdict("Vienna", BLANK.model_copy(update={"trusts": 0.0})) == (0, "", "silent", "")
    assert verdict("", passages=given[:1]) == verdict("Vienna", SURE, given[:1]) == (0, "", "silent", "")
    assert verdict("", SURE, given[:1]) == (0, "", "silent", "Prague")


def test_a_list_is_read_traced_and_given_whole() -> None:
    steps = [("Who wrote The Trial?", "Kafka", "The Trial"), ("Who were the friends of #1?", "Brod", "Circle")]
    friends = question(5, "Who were the friends of the author of The Trial?", "Brod", steps)
    listed = {"style": "list", "answers": ["Brod", "Baum", "Weltsch"]}
    asked = Question.model_validate(friends.model_dump(by_alias=True) | listed)
    texts = {"The Trial": "It is by Kafka.", "Circle": "With Baum and Brod Kafka often met.", "Else": "Baum was there."}
    passages = [Passage(id=title, title=title, text=text) for title, text in texts.items()]
    with dspy.context(lm=simulated_lm([asked], BLANK, cache=False)):
        prediction = SearChain(GivingRetriever(passages))(question=asked.question, answer_style="list")
    assert prediction.answers == ["Brod", "Baum"], "no passage has Weltsch"
    assert [node.answer for node in prediction.tree.nodes_behind_answer()] == ["Kafka", "Brod", "Baum"]


def test_an_invented_answer_is_wrong_of_the_same_kind_and_flows_into_the_next_query() -> None:
    chain = plan(more(knows=0.0, invents=1.0))
    assert chain[0].answer == "Thomas Mann"
    assert chain[1].query == "Where was Thomas Mann born?"


def test_good_demonstrations_raise_planning_and_others_do_not() -> None:
    def well_planned(demos: list[Any] | None) -> int:
        seeds = [more(plans=0.2, plans_shown=1.0, seed=seed) for seed in range(20)]
        return sum(plan(traits, demos=demos) == CHAIN for traits in seeds)

    whole = [{**demo, "chain": [Step(query=demo["question"])]} for demo in DEMOS]
    unnamed = [{**demo, "chain": [Step(query="Who is it?"), Step(query="Where was he born?")]} for demo in DEMOS]
    without = well_planned(None)
    assert without < 9
    assert without < well_planned(DEMOS[:1]) < well_planned(DEMOS[:3]) == well_planned(DEMOS) == 20
    assert well_planned(whole) < 9
    assert well_planned(unnamed) < 9


def test_a_correction_is_taken_over_as_far_as_the_passage_is_trusted() -> None:
    def corrected(trusts: float) -> dspy.Prediction:
        asked = {"question": RIVER.question, "answer_style": "short", "solved": [], "query": CHAIN[0].query}
        given = {"passages": ["The Metamorphosis | Kafka"], "reference_answer": "Franz Kafka", "later_steps": []}
        return ask(CorrectChain, more(trusts=trusts), **asked, **given, your_answer="Ovid")

    assert corrected(1.0).new_answer == "Franz Kafka"
    assert corrected(1.0).new_steps == CHAIN[1:]
    assert corrected(0.0).new_answer == "Ovid"
    assert corrected(0.0).new_steps[0].query == "Where was Ovid born?"


def test_a_completion_goes_on_from_the_query_that_was_solved() -> None:
    inputs = {"question": RIVER.question, "answer_style": "short", "passages": ["x"], "later_steps": []}
    completed = ask(CompleteChain, BLANK, solved=CHAIN[:1], query=CHAIN[1].query, reference_answer="Prague", **inputs)
    assert completed.new_answer == "Prague"
    assert completed.new_steps == [Step(query=CHAIN[2].query, answer=None)]
    remembered = ask(CompleteChain, SURE, solved=[], query=CHAIN[0].query, reference_answer="", **inputs)
    assert remembered.new_answer == "Franz Kafka"


def test_reading_is_as_good_as_its_trait_and_sure_when_right() -> None:
    def read(traits: Traits, title: str) -> dspy.Prediction:
        return ask(ReadPassage, traits, query="Where was Franz Kafka born?", passages=[PASSAGES[title].shown()])

    right, wrong = read(SURE, "Franz Kafka"), read(more(reads=0.0), "Franz Kafka")
    assert (right.span, right.confidence >= 0.85) == ("Prague", True)
    assert wrong.span != "Prague"
    assert wrong.span in PASSAGES["Franz Kafka"].text
    elsewhere = read(SURE, "Prague")  # the answer stands there, but the passage is about something else
    assert (elsewhere.span, elsewhere.confidence <= 0.3) == ("", True)
    misread = read(more(misreads=1.0), "Lübeck")
    assert misread.span in PASSAGES["Lübeck"].text
    assert misread.confidence >= 0.8


def trace(question: Any, answers: list[str | None]) -> str:
    steps = [
        {"query": step.question, "answer": answer}
        for step, answer in zip(question.resolved_steps(), answers, strict=True)
    ]
    return str(ask(TraceAnswer, BLANK, question=question.question, answer_style=question.style, steps=steps).answer)


def test_the_answer_follows_from_the_path() -> None:
    assert trace(RIVER, ["Franz Kafka", "Prague", "Trave"]) == "Trave"
    assert trace(OLDER, ["1875", "1883"]) == "yes"
    assert trace(OLDER, ["1875", "1874"]) == "no"
    assert trace(FIRST, ["1901", "1915"]) == "Buddenbrooks"
    assert trace(FIRST, ["1901", None]) == "The Metamorphosis"
