"""What holds for every program that is registered."""

from __future__ import annotations

import dspy
import pytest
from answering import TableRetriever
from dspy import lm15

from questree import program
from questree.optimize import load
from questree.optimize.artifact import save
from questree.programs import PROGRAMS

NAMES = [
    "searchain",
    "tree-of-reviews",
    "blendfilter",
    "chain-of-reviews",
    "direct",
    "cot",
    "self-consistency",
    "auto-cot",
    "recite",
    "self-ask",
    "least-to-most",
    "plan-and-solve",
    "searchain-without-retrieval",
    "oner",
    "oner-cot",
    "self-ask-retrieval",
    "plan-and-solve-retrieval",
    "react",
    "react-self-consistency",
    "toolformer",
    "verify-and-edit",
    "tree-of-thought",
    "dsp",
    "iter-retgen",
    "ircot",
]
Q = "Which river?"


def test_the_names():
    assert sorted(PROGRAMS) == sorted(NAMES)


def built(name: str):
    return program(name, retriever=TableRetriever({Q: "A"}))


@pytest.mark.parametrize("name", NAMES)
def test_an_lm_that_cannot_be_had_fails_the_question_and_says_why(name, answering):
    def refuse(asked):
        return lm15.AuthError("wrong key")

    answering(refuse)
    prediction = built(name)(question=Q)
    assert prediction.failure.cause == "auth"
    assert (prediction.answer, prediction.references) == ("", [])
    assert prediction.spent.calls == 0


@pytest.mark.parametrize("name", [name for name in NAMES if PROGRAMS[name].searches])
def test_a_program_that_searches_fails_without_a_retriever(name, answering):
    def reply(asked):
        return {
            "next_thought": {"next_thought": "Hm.", "next_tool_name": "search", "next_tool_args": {"query": "q"}},
            "chain": {"chain": [{"query": "q", "answer": None}]},
            "follow_up": {"follow_up": "q"},
            "follow_ups": {"follow_ups": ["q"]},
            "plan": {"plan": ["q"]},
            "continuation": {"continuation": "As", "search": "q", "answer": "null"},
            "thoughts": {"thoughts": "Missing.", "query": "q"},
            "query": {"query": "q"},
            "passage": {"passage": "p"},
            "topic": {"topic": "t"},
            "final_content": {"final_content": "So.", "answer": str(next(different))},
        }[asked.wants]

    different = iter(range(100))  # samples that agree need not be verified
    answering(reply)
    assert program(name)(question=Q).failure.cause == "retrieval"


@pytest.mark.parametrize("name", NAMES)
def test_every_program_is_saved_and_loaded_with_its_settings_and_demonstrations(name, tmp_path):
    before = built(name)
    for number, (_, predictor) in enumerate(before.named_predictors()):
        predictor.demos = [dspy.Example(question=f"demonstration {number}")]
    after = load(save(before, tmp_path / "program"), retriever=before.retriever)
    assert after.name == name
    assert after.settings == before.settings
    assert after.dump_state() == before.dump_state()
    assert after.named_predictors()


@pytest.mark.parametrize("name", NAMES)
def test_different_signatures_of_a_program_can_be_told_apart_by_their_fields(name):
    signatures = {id(p.signature): p.signature for p in built(name).predictors()}.values()
    assert len({tuple(signature.fields) for signature in signatures}) == len(signatures)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_shares_the_retriever_and_nothing_that_is_learned(name):
    before = built(name)
    copy = before.deepcopy()
    assert copy.retriever is before.retriever
    assert not {id(p) for p in copy.predictors()} & {id(p) for p in before.predictors()}


@pytest.mark.parametrize(
    ("name", "reply", "kind"),
    [
        ("self-ask", {"follow_up": "Where?"}, "asks"),
        ("self-ask", {"follow_up": "null"}, "ends"),
        ("self-ask-retrieval", {"query_answer": "null"}, "unknown"),
        ("plan-and-solve", {"query_answer": "Prague"}, "known"),
        ("tree-of-thought", {"complete": True, "promise": 1.0}, "complete"),
        ("tree-of-thought", {"query_answer": "Prague"}, "known"),
        ("ircot", {"thought": "So the answer is Prague."}, "ends"),
        ("ircot", {"thought": "Prague."}, "goes on"),
        ("toolformer", {"continuation": "In", "search": "q"}, "searches"),
        ("toolformer", {"continuation": "In", "search": None}, "ends"),
        ("react", {"next_tool_name": "finish"}, "finish"),
        ("verify-and-edit", {"edited": "Prague."}, "changed"),
        ("verify-and-edit", {"edited": "vienna"}, "same"),
        ("direct", {"answer": "Prague"}, ""),
        ("self-consistency", {"answer": "Prague"}, ""),
    ],
)
def test_demonstrations_can_show_each_kind_of_step(name, reply, kind):
    """A predictor whose replies differ in kind, such as going on and ending, should be shown both."""
    step = (None, {"question": Q, "query": "Where?", "sentence": "Vienna."}, dspy.Prediction(**reply))
    assert built(name).kind_of(step) == kind
