"""An answer as one file by itself: it asks for nothing, and a mark leads to its passage."""

import re
from datetime import datetime, timezone

import pytest
from hostile_text import HOSTILE

from questree.evaluation.records import Record
from questree.lm.spent import Spent
from questree.pages import answer_page
from questree.pages.asked_question import AskedQuestion
from questree.pages.question_page import progress
from questree.programs import ReasoningTree
from questree.retrieval import Passage


def test_the_page_is_one_file_whose_marks_lead_to_their_passages():
    passage = Passage(id="p", title=HOSTILE, text=f"Prague lies on the Vltava. {HOSTILE}")
    tree = ReasoningTree(question=HOSTILE)
    tree.grow(None, query=HOSTILE, answer="Vltava", source="completed", passage=passage)
    said = {"answer": "Vltava", "final_content": "Prague lies on the Vltava [1].", "references": (passage,)}
    page = answer_page(Record(id="1", question=HOSTILE, tree=tree, **said), simulated=True)
    assert not re.search(r"<(script|img|iframe|link rel=.stylesheet)", page)
    body = page.partition("</style>")[2]
    assert {"data:,", *re.findall(r'(?:src|href)="([^"]*)"', body)} == {
        "data:,",
        "#main",
        "#cited-1",
        "#closed",
        "#step-0",
    }
    assert "<mark>Prague lies on the Vltava." in page
    assert "The LM is simulated:" in page


def test_a_record_without_a_tree_or_an_answer_says_why():
    record = Record(id="1", question="Which river?", failure={"cause": "error", "message": "late"})
    assert "No answer: late" in answer_page(record, simulated=False)


@pytest.mark.parametrize("state", ["stopped", "answered"])
@pytest.mark.parametrize("ended", [None, "rejected"])
def test_a_page_without_an_answer_speaks_of_none(state, ended):
    tree = ReasoningTree(question="Which river?")
    passage = Passage(id="p", title="Prague", text="Prague lies on the Vltava.")
    tree.grow(None, query="Where?", source="passage", passage=passage, ended=ended)
    about = {"id": "x", "program": "tree-of-reviews", "answer_style": "short", "asked_at": datetime.now(timezone.utc)}
    asked = AskedQuestion(**about, tree=tree, state=state, spent=Spent(calls=1), seconds=1.25)
    page = re.sub(r"\s+", " ", re.sub("<[^>]*>", "", progress(asked)))
    assert "answer is made of" not in page
    assert "How far it came" in page
    assert ("No path has answered the question." in page) is (ended == "rejected")
    assert ("After 1 LM call and 1.2 seconds." in page) is (state == "stopped" and ended == "rejected")


def test_a_page_shows_each_item_of_a_list_and_where_it_comes_from():
    passage = Passage(id="p", title="Ada Hale", text="The friends of Ada Hale are Jo Rey and Mo Tan.")
    tree, last = ReasoningTree(question="Who are the friends of Ada Hale?"), None
    for name in ("Jo Rey", "Mo Tan"):
        found = {"source": "completed", "passage": passage, "support": passage.text}
        last = tree.grow(last, query=f"A friend of Ada Hale is {name}.", answer=name, **found)
    said = {"answer": "Jo Rey; Mo Tan", "answers": ("Jo Rey", "Mo Tan"), "references": (passage,)}
    page = answer_page(Record(id="1", question=tree.question, tree=tree, **said), simulated=False)
    assert '<ul class="short"><li>Jo Rey</li><li>Mo Tan</li></ul>' in page
    assert page.count('<span class="tag">an answer</span>') == 2


def test_a_page_says_that_the_passages_do_not_tell_it_and_what_came_nearest():
    passage = Passage(id="p", title="Ada Hale", text="Ada Hale was a sailor.")
    tree = ReasoningTree(question="Who is the sister of Ada Hale?")
    tree.grow(None, query=tree.question, source="query", found=(passage,))
    page = answer_page(Record(id="1", question=tree.question, tree=tree, nearest="Mo Tan"), simulated=False)
    assert page.count("The passages found do not tell this") == 1
    assert "What came nearest: Mo Tan." in page
    assert "No answer found" not in page
