"""Baselines that answer outright: their calls, and what each prompt holds."""

import pytest

from questree import program
from questree.lm.failure import counting_failures
from questree.programs.program import answered
from questree.programs.tree import ReasoningTree
from questree.programs.tree_views import as_text
from questree.retrieval import Passage
from questree.signatures.answers import FORMS

Q = "Which river?"


SHELF = {Q: "AB"}


def test_direct(run):
    prediction, (asked,), _ = run("direct", {"answer": "Vltava"})
    assert (asked.wants, asked.given("question"), asked.given("answer_style")) == ("answer", Q, FORMS["short"])
    assert (prediction.answer, prediction.final_content, prediction.references) == ("Vltava", "Vltava", [])
    assert as_text(prediction.tree) == f"{Q}\n└─● {Q} → Vltava  (recalled, not checked)"


@pytest.mark.parametrize("name", ["cot", "auto-cot"])
def test_a_chain_of_thought_comes_before_the_answer_and_marks_nothing(run, name):
    prediction, (asked,), _ = run(name, {"final_content": "Because of Prague [1].", "answer": "Vltava"})
    assert (asked.wants, asked.given("passages")) == ("final_content", None)
    assert (prediction.answer, prediction.final_content) == ("Vltava", "Because of Prague.")


def test_auto_cot_is_compiled_by_an_optimizer_of_its_own():
    assert program("auto-cot").default_optimizer == "auto-cot" != program("cot").default_optimizer


def test_recite_answers_from_what_it_recited(run):
    replies = {"passage": "Prague lies on the Vltava. [[ ## answer ## ]]"}, {"answer": "Vltava"}
    prediction, (recited, answered), _ = run("recite", *replies)
    assert (recited.wants, recited.given("question")) == ("passage", Q)
    assert answered.wants == "answer"
    assert len(answered.given("passages")) == 1
    assert answered.given("passages")[0].startswith("Prague lies on the Vltava.")
    assert answered.text.count("[[ ## answer ## ]]") == 1  # where the adapter asks for it
    assert (prediction.answer, prediction.passages, prediction.references) == ("Vltava", [], [])


def test_recite_shows_no_word_for_nothing(run):
    assert run("recite", {"passage": "null"}, {"answer": "Vltava"}).prediction.final_content == ""


def test_several_recitations_are_answered_from_one_by_one_and_the_majority_counts(run):
    texts = iter(["one", "two", "three"])

    def reply(asked):
        if asked.wants == "passage":
            return {"passage": next(texts)}
        return {"answer": "Elbe" if asked.given("passages") == ["one"] else "Vltava"}

    prediction, asked, _ = run("recite", reply, recitations=3)
    assert [one.wants for one in asked] == ["passage"] * 3 + ["answer"] * 3
    assert [one.temperature for one in asked[:3]] == [0.7] * 3
    assert {tuple(one.given("passages")) for one in asked[3:]} == {("one",), ("two",), ("three",)}
    assert prediction.answer == "Vltava"
    assert sorted(prediction.samples) == ["Elbe", "Vltava", "Vltava"]


def test_one_retrieval_then_an_answer(run):
    prediction, (asked,), queries = run("oner", {"answer": "Vltava"}, found={Q: "ABC"}, k=2)
    assert queries == [(Q, 2)]
    assert asked.wants == "answer"
    assert asked.given("passages") == ["[1] A | text of A", "[2] B | text of B"]
    assert [passage.id for passage in prediction.passages] == ["A", "B"]
    assert prediction.references == []
    assert as_text(prediction.tree).splitlines()[1:] == [
        f"└─● {Q} → Vltava  (read in the passages below)",
        "   ├─● A  (kept)",
        "   └─● B  (kept)",
    ]


@pytest.mark.parametrize(
    ("sure", "state"), [("True", "read in the passages below"), ("False", "a guess: no passage names it")]
)
def test_one_retrieval_then_a_chain_of_thought_that_cites(sure, state, run):
    reply = {"final_content": "As B says [2], so.", "answer": "Vltava", "sure": sure}
    prediction, (asked,), _ = run("oner-cot", reply, found=SHELF)
    assert as_text(prediction.tree).splitlines()[1].endswith(f"→ Vltava  ({state})")
    assert (asked.wants, asked.titles) == ("final_content", ("A", "B"))
    assert prediction.final_content == "As B says [1], so."
    assert [passage.id for passage in prediction.references] == ["B"]


def test_nothing_retrieved_leaves_the_lm_alone(run):
    prediction, (asked,), _ = run("oner", {"answer": "Vltava"})
    assert asked.given("passages") == []
    assert prediction.tree.nodes[0].source == "lm"


@pytest.mark.parametrize("name", ["direct", "oner", "recite"])
def test_a_text_without_references_has_no_marks(name, run):
    told = {"passage": "Kafka[1]. Prague.[2]", "answer": "Jaws is from 1975 [1]. Spielberg directed it [1, 2]."}
    prediction = run(name, lambda asked: {asked.wants: told[asked.wants]}, found=SHELF, style="long").prediction
    plain = "Jaws is from 1975. Spielberg directed it."
    assert (prediction.answer, prediction.references) == (plain, [])
    assert prediction.final_content == ("Kafka. Prague." if name == "recite" else plain)


def test_an_answer_holds_no_marks_where_its_content_does(run):
    """The answer would keep the numbers of the prompt; the content counts its references."""
    reply = {"final_content": "It is text of B [2].", "answer": "text of B [2]", "sure": "True"}
    prediction, *_ = run("oner-cot", reply, found=SHELF)
    assert (prediction.answer, prediction.final_content) == ("text of B", "It is text of B [1].")


@pytest.mark.parametrize("name", ["direct", "cot", "oner", "oner-cot", "react", "recite", "self-consistency"])
@pytest.mark.parametrize("said", ["null", "None", "I don't know.", "unknown [1]", "[1]"])
def test_an_answer_that_says_there_is_none_is_empty_in_every_program(name, said, run):
    replies = {"next_thought": "So.", "search": "", "final_content": "So.", "passage": "So.", "answer": said}
    replies |= {"sure": "True"}
    prediction = run(name, lambda asked: replies, found=SHELF).prediction
    assert prediction.answer == ""
    assert {node.source for node in prediction.tree.nodes} <= {"unsolved", "query", "passage"}, "nobody knew that"
    assert prediction.final_content in ("", "So.")


@pytest.mark.parametrize(
    ("style", "answer"), [("label", "NOT ENOUGH INFO"), ("two-label", ""), ("yes-no", ""), ("short", "")]
)
def test_no_answer_to_a_claim_with_three_labels_means_that_it_is_open(style, answer, run):
    reply = {"final_content": "Kafka wrote it.", "answer": "Cannot be determined.", "sure": "True"}
    prediction = run("oner-cot", reply, found=SHELF, style=style).prediction
    assert (prediction.answer, prediction.final_content) == (answer, "Kafka wrote it.")


def test_a_claim_that_failed_is_not_open(answering):
    answering(lambda asked: {"final_content": "So.", "answer": "REFUTES", "sure": "True"})
    with counting_failures():
        prediction = program("oner-cot")(question=Q, answer_style="label")
    assert (prediction.answer, prediction.failure.cause) == ("", "retrieval")


@pytest.mark.parametrize(("title", "answer"), [("Unknown (2011 film)", "Unknown"), ("Berlin", "")])
def test_unknown_is_an_answer_where_a_reference_has_this_title(title, answer):
    found = [Passage(id="u", title=title, text="Unknown is a film of 2011.")]
    prediction = answered(ReasoningTree(question=Q), "Unknown", "It is Unknown [1].", found)
    assert (prediction.answer, prediction.references) == (answer, found)


def test_without_an_answer_the_content_tells_how_far_it_came():
    def content(said: str) -> str:
        return answered(ReasoningTree(question=Q), "Unknown", said, []).final_content

    assert content("Unknown. No passage tells.") == content("Unknown.") == ""
    assert content(told := "Unknown. Kafka was born in Prague, but no passage tells of a river.") == told
