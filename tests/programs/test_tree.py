"""The reasoning tree: growth, paths, JSON and two of its prints."""

import pytest
from pydantic import ValidationError

from questree.programs import ReasoningTree
from questree.programs.tree_views import as_mermaid
from questree.retrieval import Passage, Span


@pytest.fixture
def tree() -> ReasoningTree:
    tree = ReasoningTree(question="Which river?")
    first = tree.grow(None, query="author", answer="Kafka", source="lm", passage=Passage(id="1", title="T", text="x"))
    old = tree.grow(first, query="birthplace", answer="Vienna", source="lm", span=Span(text="Prague", score=3.5))
    tree.grow(first, query="birthplace", answer="Prague", source="corrected", round=2, replaces=old.id)
    tree.grow(tree.nodes[2], query="river", round=2)
    return tree


def test_the_last_path_leaves_out_replaced_nodes(tree):
    assert [node.answer for node in tree.last_path()] == ["Kafka", "Prague", None]


def test_json_in_and_out_loses_nothing(tree):
    again = ReasoningTree.model_validate_json(tree.model_dump_json())
    assert again == tree


@pytest.mark.parametrize(("id", "parent"), [(0, 9), (0, 0), (0, -1), (1, None)])
def test_nodes_that_are_no_tree_are_refused(id, parent):
    with pytest.raises(ValidationError, match=f"node 0 has the id {id} and the parent {parent}"):
        ReasoningTree.model_validate({"question": "?", "nodes": [{"id": id, "parent": parent, "query": "?"}]})


def test_passages_come_once_each(tree):
    tree.grow(None, query="again", passage=tree.nodes[0].passage)
    assert [passage.id for passage in tree.passages()] == ["1"]


def test_text_marks_the_path_that_is_told(tree):
    assert str(tree).splitlines() == [
        "Which river?",
        "└─● author → Kafka  (recalled, not confirmed by T)",
        "   ├─○ birthplace → Vienna  (recalled, not checked)",
        "   └─● birthplace → Prague  (corrected; no passage names it: the model recalled Vienna)",
        "      └─● river → ?  (not looked up)",
    ]


def test_mermaid_has_a_box_and_an_arrow_for_each_node(tree):
    drawn = as_mermaid(tree)
    assert drawn.startswith("flowchart TD")
    assert all(f'n{n}["' in drawn for n in range(4))
    assert "n0 --> n1" in drawn
    assert "class n1 left" in drawn
