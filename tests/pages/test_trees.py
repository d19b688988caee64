"""A tree as it is read: the path behind the answer, what was given up, and two trees side by side."""

import re

from hostile_text import HOSTILE

from questree.evaluation import html as rendering
from questree.pages import passage_marked, reasoning
from questree.pages.trees import aligned
from questree.programs import ReasoningTree
from questree.retrieval import Passage, Span


def drawn(tree: ReasoningTree, macro: str = "steps") -> str:
    template = rendering._templates().get_template("tree.html")
    return str(getattr(template.module, macro)(reasoning(tree)))


def corrected() -> ReasoningTree:
    """Return a tree whose first step was corrected, with what followed from the wrong one."""
    tree = ReasoningTree(question="?")
    wrong = tree.grow(None, query="who", answer="Verne", source="lm")
    tree.grow(wrong, query="where", answer="Nantes", source="lm")
    passage = Passage(id="p", title="Flute", text="Mozart wrote it. It is long.")
    fields = {"passage": passage, "support": "Mozart wrote it.", "replaces": wrong.id, "source": "corrected"}
    right = tree.grow(None, query="who", answer="Mozart", **fields)
    tree.grow(right, query="where", answer="Salzburg", source="lm")
    return tree


def test_the_path_behind_the_answer_stands_out_and_what_was_given_up_is_one_line():
    shown = reasoning(corrected(), [Passage(id="p", title="Flute", text="")])
    assert [(step.view.answer, step.mark, step.tone, step.source) for step in shown.steps] == [
        ("Mozart", "full", "warn", 1),
        ("Salzburg", "half", "warn", None),
    ]
    assert [step.forgone for step in shown.steps] == ["Verne → Nantes", ""]
    assert shown.is_path
    told = ("<summary><b>given up</b>: Verne → Nantes</summary>", "<mark>Mozart wrote it.</mark>")
    told += ("<b>corrected by Flute</b>: the model recalled Verne", "<b>recalled, not checked</b>")
    assert [one for one in told if one not in drawn(corrected())] == []
    assert drawn(corrected(), "map").count('class="node') == 5
    single = ReasoningTree(question="?")
    single.grow(None, query="who", answer="Mozart", source="lm")
    assert ["Nothing was given up." in drawn(one) for one in (corrected(), single)] == [False, True]


def test_a_step_that_was_only_asked_anew_is_not_given_up():
    tree = ReasoningTree(question="?")
    tree.grow(None, query="where", source="unsolved")
    tree.grow(None, query="the birthplace", answer="Salzburg, Austria", source="lm")
    tree.grow(None, query="the town", source="unsolved", found=(Passage(id="p", text=""),))
    tree.grow(None, query="where", answer="Salzburg", source="lm")
    assert reasoning(tree).steps[0].forgone == "the town not found"


def test_paths_that_led_nowhere_are_told():
    tree = ReasoningTree(question="?")
    for title in ("Elbe", "Rhine"):
        tree.grow(None, query="?", source="passage", passage=Passage(id=title, title=title, text=""), ended="rejected")
    assert reasoning(tree).steps == []
    cited = reasoning(tree, [Passage(id="Rhine", title="Rhine", text="")])
    assert [(step.source, step.forgone) for step in cited.steps] == [(1, "Elbe")]
    assert reasoning(tree).forgone == "Elbe; Rhine"
    assert "<summary><b>read</b>: Elbe; Rhine</summary>" in drawn(tree)
    assert drawn(tree).count("read, does not help") == 2


def test_two_trees_part_where_the_same_query_has_another_answer():
    other = corrected()
    other.update(other.nodes[3], answer="Vienna")
    rows = aligned(reasoning(corrected()), reasoning(other))
    assert [row.how for row in rows] == ["same", "differs"]
    other.grow(other.nodes[3], query="river", answer="Danube", source="lm")
    assert [row.how for row in aligned(reasoning(corrected()), reasoning(other))] == ["same", "differs", "only"]


def test_sentences_are_marked():
    assert passage_marked("One. Two. Three.", ["Two."]) == [("One. ", False), ("Two.", True), (" Three.", False)]
    assert passage_marked("One.", [None, "Two."]) == [("One.", False)]
    several = passage_marked("One. Two. Three.", ["One. Three."])
    assert several == [("One.", True), (" Two. ", False), ("Three.", True)]


def test_every_text_of_a_node_is_escaped():
    passage = Passage(id=HOSTILE, title=HOSTILE, text=HOSTILE)
    tree = ReasoningTree(question=HOSTILE)
    span = Span(text=HOSTILE, score=1.0)
    fields = {"query": HOSTILE, "answer": HOSTILE, "passage": passage, "support": HOSTILE, "span": span}
    for source in ("lm", "corrected", "passage", "query"):
        tree.grow(None, source=source, **fields)
    html = drawn(tree) + drawn(tree, "map")
    known = {"ol", "ul", "li", "div", "span", "small", "p", "b", "a", "details", "summary", "mark", "blockquote"}
    assert set(re.findall(r"<(\w+)", html)) <= known
    assert not re.search("[\u202e\x1b]", html)
