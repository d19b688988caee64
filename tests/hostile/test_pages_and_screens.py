"""Other people's text in a page opens nothing and runs nothing; on a screen it moves nothing."""

import json
from base64 import b64decode
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability.fuzz import hostile_page, hostile_tree, mermaid_is_inert, page_is_inert, screen_is_still, shape_of

from questree.common.text import printable, printable_json
from questree.evaluation.comparison.page import as_page
from questree.evaluation.comparison.plots import dot_rows, scatter
from questree.evaluation.comparison.rows import Comparison
from questree.evaluation.evaluation import Evaluation
from questree.evaluation.records import Record
from questree.lm.failure import Failure
from questree.metrics import Interval
from questree.programs.tree_views import as_mermaid, as_text
from questree.retrieval import Passage

EVILS = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='x", "</title></style><b>",
    "<a href='javascript:alert(1)'>", "javascript:alert(1)", "$question ${x} $$", "&lt;script&gt;", "<!-- -->", "]]>",
    '"]; click n0 "javascript:alert(1)"; x["', "\x1b[2J\x1b]0;owned\x07", "\u202eevil", "\x9b31m",
    "\r\n%%{init}%%", "`#;|{}",
]  # fmt: skip


def test_a_tree_on_the_screen_draws_no_branch_of_its_own():
    tree = hostile_tree("".join(EVILS))
    assert len(as_text(tree).splitlines()) == 3
    assert shape_of(tree._repr_html_()) == [("pre",), ("/", "pre")]
    assert page_is_inert(hostile_page("".join(EVILS)))
    assert mermaid_is_inert(as_mermaid(tree))


@settings(max_examples=60)
@given(st.text())
def test_what_is_printable_loses_no_letter(text):
    assert screen_is_still(printable(text).replace("\n", "").replace("\t", ""))
    assert [c for c in printable(text) if c.isalnum()] == [c for c in text if c.isalnum()]


def test_json_on_the_screen_loses_nothing():
    given_ = {"answer": "\x1b[2J\u202eé\x9b"}
    shown = printable_json(json.dumps(given_, ensure_ascii=False))
    assert screen_is_still(shown)
    assert json.loads(shown) == given_


def record(text: str, failed: bool = False) -> Record:
    return Record(
        id=text,
        question=text,
        gold_answers=(text,),
        answer=text,
        final_content=text,
        references=(Passage(id=text, title=text, text=text),),
        tree=hostile_tree(text),
        scores={"em": 1.0},
        failure=Failure(cause="error", message=text) if failed else None,
        hops=2,
    )


@pytest.mark.parametrize("failed", [False, True])
def test_comparisons_have_the_same_elements_whatever_stands_in_them(failed):
    def elements(text: str) -> list[list]:
        evaluation = Evaluation("em", (record(text, failed),), simulated=True)
        compared = Comparison({text: evaluation}, title=text, task=text, lm=text, retriever=text, stopped=text)
        return [shape_of(as_page(compared)), shape_of(compared._repr_html_())]

    assert all(elements("a river"))
    for evil in ["".join(EVILS), *EVILS]:
        assert elements(evil) == elements("a river"), evil


def test_names_in_a_plot_turn_no_writing_around():
    evil, score = "".join(EVILS), Interval(0.5, 0.4, 0.6, 7)
    for image in (
        scatter({evil: (1.0, score)}, x=evil, y=evil),
        dot_rows({evil: {2: score}}, x=evil),
    ):
        drawn = ElementTree.fromstring(b64decode(image.partition("base64,")[2].removesuffix('">')))
        assert screen_is_still("".join(drawn.itertext()).replace("\n", ""))
        assert screen_is_still(image)
