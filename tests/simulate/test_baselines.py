"""What the baselines ask of the simulated LM: each signature is answered, each program runs, samples differ."""

from typing import Any

import dspy
import pytest
from house import prompts
from tiny_world import BLANK, PASSAGES, QUESTIONS, RIVER, SURE, TitleRetriever, ask

from questree.lm.guard import adapter_named
from questree.metrics import cover_exact_match
from questree.programs import PROGRAMS, build
from questree.signatures.answers import AnswerFromPassages, AnswerFromThoughts
from questree.signatures.searches import CondensePassages, WriteNextThought, WriteOrSearch, WriteSearchQuery
from questree.signatures.subquestions import (
    AnswerSubquestionFromPassages,
    AskFollowUp,
    JudgeSteps,
    PlanSteps,
    SplitQuestion,
)
from questree.simulate import Traits, simulated_lm
from questree.simulate.phrases import write_fact

EXACT = {"misjudges": 0, "overlooks": 0, "asks": 1}
FAIR = BLANK.model_copy(update=EXACT | {"completes": 0.0})
AUTHOR, BIRTH, FLOWS = (
    "Who wrote The Metamorphosis?",
    "Where was Franz Kafka born?",
    "Which river flows through Prague?",
)
ASKED = {"question": RIVER.question, "answer_style": "short"}
SOLVED = [{"query": AUTHOR, "answer": "Franz Kafka"}]
ALL = [*SOLVED, {"query": BIRTH, "answer": "Prague"}, {"query": FLOWS, "answer": "Vltava"}]
NUMBERED = [f"[{n}] {PASSAGES[title].shown()}" for n, title in enumerate(["The Metamorphosis", "Franz Kafka"], start=1)]
FOUND = f"[Search({AUTHOR}) → {NUMBERED[0]}]"


def replied(signature: Any, traits: Traits = FAIR, adapter: Any = None, **given: Any) -> dspy.Prediction:
    wanted = signature.input_fields
    return ask(
        signature,
        traits,
        adapter=adapter,
        **{name: value for name, value in {**ASKED, **given}.items() if name in wanted},
    )


@pytest.mark.parametrize(
    ("signature", "given", "expected"),
    [
        (SplitQuestion, {}, {"subquestions": [step.question for step in RIVER.steps]}),
        (PlanSteps, {}, {"plan": [step.question for step in RIVER.steps]}),
        (AskFollowUp, {"solved": []}, {"follow_up": AUTHOR}),
        (AskFollowUp, {"solved": SOLVED}, {"follow_up": BIRTH}),
        (AskFollowUp, {"solved": ALL}, {"follow_up": "null"}),
        (JudgeSteps, {"solved": SOLVED}, {"complete": False}),
        (JudgeSteps, {"solved": ALL}, {"complete": True}),
        (
            AnswerSubquestionFromPassages,
            {"solved": SOLVED, "query": BIRTH, "passages": NUMBERED},
            {"query_answer": "Prague", "references": [2]},
        ),
        (
            AnswerSubquestionFromPassages,
            {"solved": SOLVED, "query": FLOWS, "passages": NUMBERED},
            {"query_answer": "null", "references": []},
        ),
        (WriteNextThought, {"passages": NUMBERED, "thoughts": []}, {"thought": write_fact(AUTHOR, "Franz Kafka", 1)}),
        (WriteSearchQuery, {"passages": NUMBERED}, {"query": FLOWS}),
        (WriteOrSearch, {"written": []}, {"search": AUTHOR, "answer": "null"}),
        (
            WriteOrSearch,
            {"written": [f"To be looked up: {AUTHOR}", FOUND]},
            {"continuation": write_fact(BIRTH, None), "search": BIRTH},
        ),
        (
            CondensePassages,
            {"query": BIRTH, "written": [write_fact(AUTHOR, "Franz Kafka")], "passages": NUMBERED},
            {"finding": f"{write_fact(AUTHOR, 'Franz Kafka', 1)} {write_fact(BIRTH, 'Prague', 2)}"},
        ),
        (
            CondensePassages,
            {"query": BIRTH, "written": [write_fact(AUTHOR, "Franz Kafka", 1)], "passages": NUMBERED},
            {"finding": write_fact(BIRTH, "Prague", 2)},
        ),
        (AnswerFromThoughts, {"thoughts": [write_fact(s["query"], s["answer"]) for s in ALL]}, {"answer": "Vltava"}),
        (AnswerFromPassages, {"passages": [p.shown() for p in PASSAGES.values()]}, {"answer": "Vltava"}),
        (AnswerFromPassages, {"passages": NUMBERED[:1]}, {"answer": "Franz Kafka"}),
    ],
)
def test_each_step_is_answered_from_what_stands_in_the_prompt(signature: Any, given: Any, expected: Any) -> None:
    reply = replied(signature, **given)
    assert {name: reply[name] if reply[name] is not None else "null" for name in expected} == expected


@pytest.mark.parametrize("form", ["chat", "json", "baml", "xml"])
def test_every_signature_of_the_package_has_a_reply_that_parses(form: str) -> None:
    given = {
        **{"query": BIRTH, "your_answer": "Vienna", "reference_answer": "Prague", "topic": "people", "count": 3},
        **{"solved": SOLVED, "passages": NUMBERED, "thoughts": [], "written": [], "sentence": write_fact(BIRTH, "x")},
        **{"steps": SOLVED, "assertions": [{"answer": "Elbe", "references": [1]}]},
    }
    for signature in prompts().values():
        reply = replied(signature, SURE, adapter=adapter_named(form), **given)
        assert set(signature.output_fields) <= set(reply.keys()), signature.__name__


def scores(name: str, traits: Traits) -> float:
    with dspy.context(lm=simulated_lm(QUESTIONS, traits, cache=False)):
        program = build(name, {}, retriever=TitleRetriever())
        found = [program(question=q.question, answer_style=q.style) for q in QUESTIONS]
    assert [prediction.failure for prediction in found] == [None] * len(QUESTIONS)
    right = [cover_exact_match(one.answer, list(q.answers)) for one, q in zip(found, QUESTIONS, strict=True)]
    return sum(right) / len(right)


@pytest.mark.parametrize("name", [name for name, kind in PROGRAMS.items() if not kind.searches])
def test_without_retrieval_a_model_that_knows_nothing_answers_nothing(name: str) -> None:
    assert scores(name, FAIR) == 0


@pytest.mark.parametrize(
    "name", [*["oner-cot", "plan-and-solve-retrieval", "react", "dsp", "ircot", "multi-hop", "multi-hop-summaries"]]
)
def test_with_retrieval_the_same_model_answers_from_what_is_found(name: str) -> None:
    assert scores(name, FAIR) == 1
