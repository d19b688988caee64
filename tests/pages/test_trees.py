"""A tree as cards: nested as it grew, its passages with the sentence behind each answer."""

from __future__ import annotations

import re

from hostile_text import HOSTILE

from questree.pages import cards, marked
from questree.pages import html as rendering
from questree.programs import ReasoningTree
from questree.retrieval import Passage, Span


def drawn(tree: ReasoningTree) -> str:
    template = rendering._templates().get_template("tree.html")
    return str(template.module.tree(cards(tree)))


def test_cards_stand_under_their_parents():
    tree = ReasoningTree(question="?")
    first = tree.grow(None, query="a")
    tree.grow(tree.grow(first, query="b"), query="c")
    tree.grow(None, query="d")
    shape = [(one.node.query, [(child.node.query, len(child.under)) for child in one.under]) for one in cards(tree)]
    assert shape == [("a", [("b", 1)]), ("d", [])]
    assert re.findall(r'id="node-(\d)"', drawn(tree)) == ["0", "1", "2", "3"]


def test_the_sentence_behind_the_answer_is_marked():
    assert marked("One. Two. Three.", "Two.") == ("One. ", "Two.", " Three.")
    assert marked("One.", None) == marked("One.", "Two.") == ("One.", "", "")
    passage = Passage(id="p", title="Elbe", text="It is long. It is in Europe.")
    tree = ReasoningTree(question="?")
    tree.grow(None, query="a", answer="Europe", source="completed", passage=passage, support="It is in Europe.")
    assert "It is long. <mark>It is in Europe.</mark>" in drawn(tree)


def test_every_text_of_a_node_is_escaped():
    passage = Passage(id=HOSTILE, title=HOSTILE, text=HOSTILE)
    tree = ReasoningTree(question=HOSTILE)
    span = Span(text=HOSTILE, score=1.0)
    fields = {"query": HOSTILE, "answer": HOSTILE, "passage": passage, "support": HOSTILE, "span": span}
    for source in ("lm", "corrected", "passage", "query"):
        tree.grow(None, source=source, **fields)
    html = drawn(tree)
    assert set(re.findall(r"<(\w+)", html)) <= {"ul", "li", "div", "small", "p", "b", "details", "summary", "mark"}
    assert not re.search("[\u202e\x1b]", html)
