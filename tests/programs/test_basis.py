"""How steps and answers stand, in words."""

from typing import Any

import dspy
import pytest

from questree.data import load_task
from questree.programs import ReasoningTree, answered
from questree.programs.basis import Standing, basis, node_state, standing_of
from questree.retrieval import Passage

IKEA = Passage(id="1", title="IKEA", text="IKEA was founded in Sweden.")
SWEDEN = Passage(id="2", title="Sweden", text="Its highest mountain is Kebnekaise.")


def grown(*steps: dict[str, Any]) -> ReasoningTree:
    tree, last = ReasoningTree(question="Which mountain?"), None
    for step in steps:
        last = tree.grow(last, query="Which?", **step)
    return tree


def stands(tree: ReasoningTree, answer: str, references: list[Passage], content: str = "") -> Standing:
    rests_on = basis(tree, answer, references)
    return standing_of(
        dspy.Prediction(tree=tree, answer=answer, references=references, rests_on=rests_on, final_content=content)
    )


READ = {"answer": "Sweden", "source": "completed", "passage": IKEA, "support": IKEA.text, "found": (IKEA,)}
CONFIRMED = READ | {"source": "lm", "sure": True}
RECALLED = {"answer": "Sweden", "source": "lm", "sure": True, "found": (SWEDEN,)}
GUESSED = {"answer": "Sweden", "source": "completed", "found": (SWEDEN,)}


@pytest.mark.parametrize(
    ("step", "state"),
    [
        (READ, "found in IKEA"),
        (CONFIRMED, "recalled, confirmed by IKEA"),
        (RECALLED, "recalled, not confirmed: 1 passage read"),
        ({"answer": "Sweden", "source": "lm"}, "recalled, not checked"),
        (GUESSED, "a guess: no passage names it"),
        (READ | {"source": "corrected"}, "corrected by IKEA"),
        (READ | {"read_before": True}, "found in IKEA, read before"),
        (CONFIRMED | {"read_before": True}, "recalled, confirmed by IKEA, read before"),
        ({"found": (IKEA, SWEDEN)}, "not found: 2 passages read"),
        ({"found": (IKEA,), "stance": "supports"}, "found: the step that took its place has the answer"),
        ({}, "not looked up"),
        ({"source": "passage", "ended": "enough agreement"}, "not read: one path already answered"),
        ({"source": "passage", "ended": "accepted"}, "read, answers the question"),
    ],
)
def test_a_step(step: dict[str, Any], state: str):
    assert node_state(grown(step).nodes[0]) == state


def test_a_correction_tells_what_was_recalled():
    tree = grown({"answer": "Hungary", "source": "lm"})
    new = tree.grow(None, query="Which?", replaces=0, **(READ | {"source": "corrected"}))
    assert node_state(new, tree) == "corrected by IKEA: the model recalled Hungary"


@pytest.mark.parametrize(
    ("steps", "answer", "references", "rests_on", "words"),
    [
        ([READ, CONFIRMED], "Sweden", [IKEA], "passages", "Supported by passages"),
        ([READ, CONFIRMED], "Sweden", [], "passages", "No source cited"),
        ([READ, RECALLED], "Sweden", [IKEA], "memory", "Partly from the model’s memory"),
        ([READ, GUESSED], "Sweden", [IKEA], "guess", "A guess"),
        ([RECALLED], "Sweden", [], "memory", "From the model’s memory alone"),
        ([READ, {}], "", [IKEA], None, "The passages found do not tell this"),
        ([], "", [], None, "No answer found"),
        ([READ, {"found": (SWEDEN,)}], "Norway", [IKEA], "guess", "A guess"),
        ([READ, {"found": (SWEDEN,)}], "NOT ENOUGH INFO", [IKEA], "passages", "Partly from the model’s memory"),
        ([], "Sweden", [IKEA], "passages", "Supported by 1 passage"),
        ([], "Norway", [IKEA], "memory", "No cited passage names the answer"),
        ([], "Kebnekaise and IKEA", [IKEA, SWEDEN], "passages", "Supported by 2 passages"),
        ([], "Kebnekaise, Norway", [IKEA, SWEDEN], "memory", "No cited passage names the answer"),
        ([], "yes", [IKEA, SWEDEN], "passages", "Supported by 2 passages"),
        ([], "yes", [], "memory", "From the model’s memory alone"),
    ],
)
def test_an_answer(steps, answer, references, rests_on, words):
    tree = grown(*steps)
    assert basis(tree, answer, references) == rests_on
    assert stands(tree, answer, references).words == words


PRINTER = Passage(id="3", title="Ostal", text="She was a solicitor. In Trinidad and Tobago she became a printmaker.")


@pytest.mark.parametrize(
    ("answer", "rests_on"),
    [
        *[(f"solicitor{between}printmaker", "passages") for between in (" and ", ", ", "; ", " or ", " & ", "/")],
        ("a printmaker, and a solicitor", "passages"),
        ("printmaker as well as solicitor", "passages"),
        ("Trinidad and Tobago", "passages"),
        ("solicitor and brewer", "memory"),
        ("brewer, solicitor, and printmaker", "memory"),
    ],
)
def test_each_part_of_an_answer_that_names_several_things_is_looked_for(answer: str, rests_on: str):
    assert basis(grown(), answer, [IKEA, PRINTER]) == rests_on


@pytest.mark.parametrize(("sure", "rests_on"), [(True, "passages"), (False, "guess")])
def test_an_answer_that_the_lm_calls_a_guess_is_one_although_a_cited_passage_names_it(run, sure: bool, rests_on: str):
    said = {"final_content": "I can only guess: text of A [1].", "answer": "text of A", "sure": str(sure)}
    acts = {"next_thought": "Hm.", "search": "", "summary": "", "thoughts": "", "query": "", "new_notes": []}
    for name in ("oner-cot", "react", "iter-retgen", "dsp", "multi-hop", "multi-hop-summaries"):
        found, first = {"Which?": "A"}, {"first_search": 1} if name == "react" else {}
        prediction, *_ = run(name, lambda asked: acts | said, found=found, question="Which?", **first)
        assert prediction.rests_on == (rests_on if prediction.references else "memory" if sure else "guess"), name
        said_none, *_ = run(
            name, lambda asked: acts | said | {"answer": "unknown"}, found=found, question="Which?", **first
        )
        assert said_none.rests_on is None, name


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("IKEA is of Sweden [1].", "Supported by passages"),
        ("It lies in Norway [1].", "Weakly supported"),
        ("IKEA is of Sweden [1]. It lies in Europe.", "Partly supported"),
    ],
)
def test_marks_that_do_not_bear_out_the_text_weaken_the_support(content, words):
    assert stands(grown(READ), "Sweden", [IKEA], content).words == words


def test_what_was_answered_of_a_question_without_an_answer():
    assert stands(grown(READ, {}), "", []).told == "Steps that were answered: 1 of 2."
    assert stands(grown(READ), "", []).told == "", "what is open then is no step"


def test_what_is_printed_of_a_prediction_and_of_a_task_fits_a_screen():
    said = answered(grown(READ), "Sweden", "IKEA was founded in Sweden [1].", [IKEA], rests_on="passages")
    assert str(said).splitlines()[:2] == ["Sweden", "IKEA was founded in Sweden [1]."]
    assert len(str(said).splitlines()) == 4
    assert str(load_task("mini")).startswith("mini: ")
    assert len(str(load_task("mini"))) < 100
