"""The fields of an answer: whatever tells an answer tells the same ones."""

import dspy
import pytest
from parrot import RIGHT, Parrot
from pydantic import BaseModel

from questree import stream
from questree.evaluation.records import record_answer
from questree.optimize import mlflow_model
from questree.pages.asked_question import ShownAnswer
from questree.programs import Program, ReasoningTree, answered
from questree.programs.answer import Answered, answer_items, as_fields
from questree.programs.basis import standing_of
from questree.programs.evidence import Evidence, united
from questree.retrieval import Passage

ADA = Passage(id="1", title="Ada Hale", text="The friends of Ada Hale are Jo Rey and Mo Tan.")
TOBAGO = Passage(id="2", title="Trinidad and Tobago", text="An island state.")


def test_json_stream_record_page_and_served_model_tell_the_same_fields():
    prediction = Parrot()(question=RIGHT.question)
    [*_, done] = stream(Parrot(), RIGHT.question)
    record = record_answer(RIGHT, prediction)
    said = as_fields(prediction)
    assert said.keys() == Answered.model_fields.keys()
    assert done.model_dump(mode="json")["prediction"].keys() == said.keys()
    assert as_fields(record.prediction) == said
    page = ShownAnswer.of_prediction(record, simulated=False)
    assert page == ShownAnswer.of_prediction(prediction, simulated=False)
    assert {name: value for name, value in page.model_dump(mode="json").items() if name in said} == said
    assert mlflow_model._signature().outputs.input_names() == [*said, "simulated"]


def test_what_a_program_of_ones_own_does_not_tell_is_as_by_default():
    assert Answered.of(dspy.Prediction(answer="Vltava", votes=3)) == Answered(answer="Vltava")
    with pytest.raises(ValueError, match="references"):
        Answered.of(dspy.Prediction(references=["not a passage"]))


class Abstains(BaseModel):
    abstain: str = "off"


class Told(Program):
    """Answers with what it was given."""

    name = "told"

    def __init__(self, answer: str, content: str = "", abstain: str = "off", sure: bool = True):
        super().__init__(None, Abstains(abstain=abstain))
        self.told = (answer, content, sure)

    def reason(self, tree: ReasoningTree, answer_style):
        answer, content, sure = self.told
        tree.grow(None, query="q", source="query", found=(ADA, TOBAGO))
        return answered(tree, answer, content, [ADA], sure)


@pytest.mark.parametrize(
    ("written", "items"),
    [
        ("Jo Rey; Mo Tan", ["Jo Rey", "Mo Tan"]),
        ("Jo Rey;Mo Tan;", ["Jo Rey", "Mo Tan"]),
        ("1. Jo Rey\n2. “Mo Tan”", ["Jo Rey", "Mo Tan"]),
        ("- Jo Rey\n- Mo Tan", ["Jo Rey", "Mo Tan"]),
        ('["Jo Rey", "Rey, Mo"]', ["Jo Rey", "Rey, Mo"]),
        ("[Jo Rey; Mo Tan", ["[Jo Rey", "Mo Tan"]),
        ("Jo Rey, Mo Tan and Al Ek", ["Jo Rey", "Mo Tan", "Al Ek"]),
        ("Jo Rey; and Mo Tan", ["Jo Rey", "Mo Tan"]),
        ("Jo Rey; jo rey; unknown", ["Jo Rey"]),
        ("3 May 1979; May 3, 1979; 1980", ["3 May 1979", "1980"]),
        ("Trinidad and Tobago", ["Trinidad and Tobago"]),
        ("Trinidad and Tobago; Peru", ["Trinidad and Tobago", "Peru"]),
        ("", []),
    ],
)
def test_a_list_is_parted_as_an_lm_writes_one(written: str, items: list[str]):
    assert answer_items(written, {"trinidad and tobago"}) == items


@pytest.mark.parametrize(
    ("style", "answer", "answers", "others"),
    [
        ("list", "Jo Rey\nMo Tan", ["Jo Rey", "Mo Tan"], []),
        ("short", "Jo Rey; Mo Tan; Al Ek", ["Jo Rey"], ["Mo Tan", "Al Ek"]),
        ("short", "Jo Rey and Mo Tan", ["Jo Rey and Mo Tan"], []),
        ("long", "Jo Rey is one; Mo Tan the other.", ["Jo Rey is one; Mo Tan the other."], []),
        ("list", "none", [], []),
        ("label", "", ["NOT ENOUGH INFO"], []),
    ],
)
def test_every_style_has_its_items(style, answer: str, answers: list[str], others: list[str]):
    prediction = Told(answer)(question="Who?", answer_style=style)
    assert (prediction.answers, prediction.answer) == (answers, "; ".join(answers))
    assert (prediction.others, prediction.nearest) == (others, "")


def test_what_fits_as_well_and_what_no_passage_holds_is_told():
    prediction = Told("Jo Rey; Mo Tan", "So the answer is: Jo Rey; Mo Tan.")(question="Who?")
    assert prediction.final_content == "So the answer is: Jo Rey. Others fit as well: Mo Tan."
    content = "Ada is a friend of Jo Rey and Mo Tan [1]. So the answer is: Jo Rey\nAl Ek."
    prediction = Told("Jo Rey\nAl Ek", content)(question="Who?", answer_style="list")
    assert prediction.final_content.endswith("[1]. So the answer is: Jo Rey; Al Ek. Not in a passage: Al Ek.")
    assert (prediction.rests_on, prediction.answers) == ("memory", ["Jo Rey", "Al Ek"])


@pytest.mark.parametrize(
    ("abstain", "style", "answer", "sure", "answers", "rests_on"),
    [
        ("unsupported", "short", "Al Ek", True, [], None),
        ("unsupported", "short", "Jo Rey", True, ["Jo Rey"], "passages"),
        ("unsupported", "short", "Jo Rey", False, [], None),
        ("unsupported", "list", "Jo Rey; Al Ek", False, ["Jo Rey"], "passages"),
        ("unsupported", "list", "Al Ek", True, [], None),
        ("unsupported", "label", "SUPPORTS", False, ["NOT ENOUGH INFO"], "passages"),
        ("unsure", "short", "Al Ek", True, ["Al Ek"], "memory"),
        ("unsure", "short", "Jo Rey; Mo Tan", False, [], None),
        ("unsure", "list", "Jo Rey; Al Ek", False, [], None),
        ("off", "short", "Al Ek", False, ["Al Ek"], "guess"),
        ("off", "list", "Jo Rey; Mo Tan", True, ["Jo Rey", "Mo Tan"], "passages"),
        ("off", "list", "Jo Rey; Al Ek", False, ["Jo Rey", "Al Ek"], "guess"),
    ],
)
def test_abstaining_leaves_out_what_no_passage_holds_or_what_is_a_guess(
    abstain: str, style, answer: str, sure: bool, answers: list[str], rests_on
):
    prediction = Told(answer, abstain=abstain, sure=sure)(question="Who?", answer_style=style)
    assert (prediction.answers, prediction.rests_on, prediction.failure) == (answers, rests_on, None)
    left = [one for one in answer.split("; ") if one not in prediction.answers]
    assert prediction.nearest == "; ".join(left)


def test_an_answer_that_is_left_out_is_told_as_what_came_nearest_and_not_as_the_answer():
    content = "Ada Hale is a friend of Jo Rey [1]. So the answer is: Al Ek."
    prediction = Told("Al Ek", content, abstain="unsupported")(question="Who?")
    assert prediction.final_content == "Ada Hale is a friend of Jo Rey [1]."
    told = "The passages found do not tell this. What came nearest: Al Ek."
    assert str(standing_of(prediction)) == told
    assert told in str(prediction)
    assert told in prediction._repr_html_()
    page = ShownAnswer.of_prediction(prediction, simulated=False)
    assert page.told == f"{prediction.final_content} {told}"


def test_a_mark_behind_the_full_stop_keeps_its_sentence_where_the_answer_is_left_out():
    content = "Ada Hale is a friend of Jo Rey. [1] So the answer is: Al Ek."
    prediction = Told("Al Ek", content, abstain="unsupported")(question="Who?")
    assert prediction.final_content == "Ada Hale is a friend of Jo Rey[1]."


def test_facts_of_several_paths_stand_once_with_their_marks_also_behind_the_full_stop():
    ada = Evidence(analysis="Ada Hale sails. [1]\nJo Rey is her friend. [1]", answer="Jo Rey", passages=(ADA,))
    both = Evidence(analysis="Ada Hale sails. [2]\nTobago is large. [1]", answer="Mo Tan", passages=(TOBAGO, ADA))
    told = united([ada, both])
    assert told.analysis == "Ada Hale sails[1]. Jo Rey is her friend[1]. Tobago is large[2]."


def test_an_answer_that_was_kept_before_there_were_items_has_one():
    assert Answered.model_validate({"answer": "Jo; Mo"}).answers == ("Jo; Mo",)


def test_each_item_that_a_passage_holds_has_a_node_of_its_own():
    prediction = Told("Jo Rey; Mo Tan; Di Ott", "Jo Rey and Mo Tan [1].")("Who are the friends?", "list")
    grown = [(node.answer, node.passage, node.support) for node in prediction.tree.nodes[1:]]
    assert grown == [(one, ADA, ADA.text) for one in ("Jo Rey", "Mo Tan")]
    assert [node.parent for node in prediction.tree.nodes] == [None, 0, 0]
    assert len(prediction.tree.nodes_behind_answer()) == 3
    assert [len(Told("Jo Rey", "Jo Rey [1].")("Who?", style).tree.nodes) for style in ("short", "list")] == [1, 2]


def test_the_node_of_an_item_shows_the_passage_that_is_cited_at_it_and_what_that_tells_of_it():
    father = Passage(id="al", title="Al Rey", text="The son of Al Rey is Jo Rey.", score=1)
    mother = Passage(
        id="jo", title="Jo Rey", text="The friend of Jo Rey is Di Ott. The mother of Jo Rey is Ann Rey.", score=1
    )

    class Cites(Told):
        def reason(self, tree: ReasoningTree, answer_style):
            return answered(
                tree, "Jo Rey", "Ann Rey is the wife of Al Rey [1], and the mother of Jo Rey [2].", [father, mother]
            )

    node = Cites("")("Who is the friend of Di Ott?", "list").tree.nodes[-1]
    assert (node.answer, node.passage, node.support) == ("Jo Rey", mother, "The mother of Jo Rey is Ann Rey.")


def test_the_node_of_an_item_stands_below_the_passage_that_was_kept():
    class Keeps(Told):
        def reason(self, tree: ReasoningTree, answer_style):
            kept = tree.grow(None, query="q", source="passage", passage=ADA)
            tree.update(kept, ended="kept")
            tree.update(tree.grow(None, query="q", source="passage", passage=TOBAGO), ended="filtered out")
            return answered(tree, "Mo Tan", "Mo Tan [1].", [ADA])

    tree = Keeps("")("Who is a friend?", "list").tree
    assert (tree.nodes[-1].answer, tree.nodes[-1].parent, tree.nodes[-1].ended) == ("Mo Tan", 0, "accepted")
