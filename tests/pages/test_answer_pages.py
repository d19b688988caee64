"""An answer as one file by itself: it asks for nothing, and a mark leads to its passage."""

import re

from hostile_text import HOSTILE

from questree.evaluation.records import Record
from questree.lm.spent import Spent
from questree.pages import answer_page
from questree.pages.asked_question import AskedQuestion
from questree.pages.question_page import question_page
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


def test_the_page_of_a_stopped_question_speaks_of_no_answer():
    tree = ReasoningTree(question="Which river?")
    tree.grow(None, query="Which river?", source="query", passage=Passage(id="p", text="Prague."), ended="rejected")
    place = {"id": "1", "program": "oner", "answer_style": "short", "asked_at": "2026-01-01T00:00:00Z"}
    asked = AskedQuestion(tree=tree, state="stopped", spent=Spent(calls=1), **place)
    page = question_page(asked, ["oner"])
    assert "After 0 steps, 1 call and 0.0 seconds." in page
    assert [words for words in ("path answered", "the answer is", "How it got there") if words in page] == []
    answered = question_page(asked.model_copy(update={"state": "answered", "answer": "Vltava"}), ["oner"])
    assert "No path answered the question by itself: the answer is made of what was read." in answered
