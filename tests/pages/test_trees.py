"""A tree as cards: nested as it grew, its passages with the sentence behind each answer."""

import re
from html.parser import HTMLParser

from hostile_text import HOSTILE

from questree.pages import cards, marked
from questree.pages import html as rendering
from questree.programs import ReasoningTree
from questree.retrieval import Passage, Span


def drawn(tree: ReasoningTree) -> str:
    template = rendering._templates().get_template("tree.html")
    return str(template.module.tree(cards(tree)))


class Shape(HTMLParser):
    """The ids of a tree's nodes, each with those of the nodes that it stands under; every list must end."""

    def __init__(self, html: str):
        super().__init__()
        self.open, self.under = list[str](), dict[str, list[str]]()
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        id = dict(attrs).get("id") or ""
        if tag == "li":
            self.under[id] = [one for one in self.open if one.startswith("node-")]
        self.open.append(id)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()


def test_cards_stand_under_their_parents():
    tree = ReasoningTree(question="?")
    first = tree.grow(None, query="a")
    second = tree.grow(first, query="b")
    tree.grow(second, query="c")
    tree.grow(None, query="d")
    tree.grow(first, query="e")
    tree.grow(second, query="f")
    assert list(Shape(drawn(tree)).under.items()) == [
        ("node-0", []),
        ("node-1", ["node-0"]),
        ("node-2", ["node-0", "node-1"]),
        ("node-5", ["node-0", "node-1"]),
        ("node-4", ["node-0"]),
        ("node-3", []),
    ]
    assert drawn(ReasoningTree(question="?")).count("<li") == 0


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
