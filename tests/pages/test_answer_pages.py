"""An answer as one file by itself: it asks for nothing, and a mark leads to its passage."""

import re

from hostile_text import HOSTILE

from questree.evaluation.records import Record
from questree.pages import answer_page
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
