"""What holds for every program that is registered."""

import re

import dspy
import pytest
from answering import TableRetriever, searching
from steps import last_step, steps, titled
from tiny_world import QUESTIONS

from questree import program
from questree.lm.failure import CannotAskError
from questree.optimize import load
from questree.optimize.artifact import save
from questree.programs import PROGRAMS
from questree.programs.demonstrations import noted
from questree.retrieval.base import check_query
from questree.simulate import Traits, simulated_lm
from questree.simulate.engine import SimulatedEngine

NAMES = sorted(PROGRAMS)
Q = "Which river?"


def built(name: str):
    return program(name, retriever=TableRetriever({Q: "A"}))


@pytest.mark.parametrize("name", [name for name in NAMES if PROGRAMS[name].searches])
def test_a_program_that_searches_fails_without_a_retriever(name, answering):
    answering(searching("q"))
    with pytest.raises(CannotAskError, match="needs a retriever"):
        program(name)(question=Q)


@pytest.fixture
def without_queries(monkeypatch):
    """A simulated LM that writes a space wherever a query is wanted."""
    replied = SimulatedEngine.reply_to

    def reply_to(engine, request):
        response = replied(engine, request)
        part = response.message.parts[0]
        fields = "query|search|thought|next_query"
        text = re.sub(rf"(\[\[ ## (?:{fields}) ## \]\]\n)(?!null).*?(?=\n+\[\[|\Z)", r"\1 ", part.text, flags=re.DOTALL)
        object.__setattr__(part, "text", re.sub(r'("query": )"[^"]*"', r'\1" "', text))
        return response

    monkeypatch.setattr(SimulatedEngine, "reply_to", reply_to)


@pytest.mark.parametrize("name", [name for name in NAMES if PROGRAMS[name].searches])
def test_an_empty_query_finds_nothing_and_fails_no_question(name, without_queries):
    asked = QUESTIONS[0]
    unsure = Traits(knows=0.0, malformed=0.0)
    searched = []

    def search(query, k):
        searched.append(check_query(query))
        return titled("A")

    with dspy.context(lm=simulated_lm(QUESTIONS, unsure, cache=False), adapter=None):
        prediction = program(name, retriever=search)(question=asked.question, answer_style=asked.style)
    assert prediction.failure is None
    assert all(searched)


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
    assert copy.retriever is before.retriever is before.reset_copy().retriever
    assert not {id(p) for p in copy.predictors()} & {id(p) for p in before.predictors()}


def test_predictors_are_not_looked_for_in_the_history_which_grows_with_each_lm_call():
    asked = built("searchain")
    known = [name for name, _ in asked.named_predictors()]
    asked.history.append(dspy.Predict("question -> answer"))
    assert [name for name, _ in asked.named_predictors()] == known
    assert len(asked.history) == 1


ASKS, ENDS = {"follow_up": "Where?"}, {"follow_up": None}
UNKNOWN, KNOWN = ({"query_answer": answer, "references": []} for answer in (None, "Prague"))
WRITES = {"continuation": "In", "search": "q", "answer": None}
TOLD = {"final_content": "So.", "answer": "Prague", "sure": "True"}
SEARCHES, ANSWERS = ({**TOLD, "next_thought": "Hm.", **one} for one in ({"search": "q", "answer": ""}, {"search": ""}))


@pytest.mark.parametrize(
    ("name", "replies", "kinds"),
    [
        ("self-ask", [ASKS, UNKNOWN, ENDS, TOLD], ["asks", "unknown", "ends", "guesses"]),
        ("plan-and-solve", [{"plan": ["Where?"]}, KNOWN, TOLD], ["", "known", "remembers"]),
        (
            "tree-of-thought",
            [{"follow_ups": ["q"]}, KNOWN, {"complete": True, "promise": 1.0}, TOLD],
            ["", "known", "complete", "remembers"],
        ),
        (
            "tree-of-thought",
            [{"follow_ups": ["q"]}, KNOWN, {"complete": False, "promise": 1.0}, {"follow_ups": []}, TOLD],
            ["", "known", "open", "", "remembers"],
        ),
        ("ircot", [{"thought": "In Prague."}, {"thought": "So the answer is x."}, TOLD], ["goes on", "ends", ""]),
        ("toolformer", [WRITES, {**WRITES, "search": None, "answer": "a"}], ["searches", "ends"]),
        ("react", [SEARCHES, ANSWERS], ["searches", "answers"]),
        ("direct", [{"answer": "Prague"}], [""]),
    ],
)
def test_demonstrations_can_show_each_kind_of_step(name, replies, kinds):
    """A predictor whose replies differ in kind, such as going on and ending, should be shown both."""
    assert [noted(step).kind for step in steps(built(name), *replies, question=Q)] == kinds


@pytest.mark.parametrize(("thought", "shown"), [("In Prague.", True), ("In Prague. On a river.", False), (" ", False)])
def test_a_thought_of_one_sentence_alone_is_demonstrated(thought, shown):
    module = built("ircot").next_thought
    step = last_step(module, {"thought": thought}, question=Q, answer_style="short", passages=[], thoughts=[])
    assert noted(step).exemplary == shown


@pytest.mark.parametrize(("edited", "kind"), [("Prague.", "changed"), ("vienna", "same")])
def test_an_edit_changes_the_sentence_or_leaves_it(edited, kind):
    replies = {"query": Q}, {"edited": edited, "references": []}
    step = last_step(built("verify-and-edit").verify, *replies, question=Q, sentence="Vienna.")
    assert noted(step).kind == kind


@pytest.mark.parametrize("name", NAMES)
def test_every_program_is_told_that_a_list_is_asked_for_and_parts_it(name, answering):
    told = dict.fromkeys(("answer", "query_answer"), "Ann Lee; Bo Ek")
    told |= {"judgements": [], "evidence": [], "comparison": [], "searches": [], "subquestions": ["q"]}
    told |= {"relevant": True, "supported": True, "answered_plan": [{"query": "q", "answer": "Ann Lee"}]}
    told |= {"looked_up": [{"answer": "Ann Lee", "passage": 0}]}
    engine = answering(searching("q", **told))
    prediction = program(name, retriever=TableRetriever({Q: "A", "q": "B"}))(question=Q, answer_style="list")
    assert prediction.failure is None
    assert prediction.answers == ["Ann Lee", "Bo Ek"]
    assert any("every answer that" in (one.given("answer_style") or "") for one in engine.asked)
