"""Chain of Reviews: the same review on a single path (methods: Li et al., 2024, section 4.4)."""

from typing import Any

import pytest
from answering import Asked, TableRetriever

from questree.programs import ChainOfReviews, ChainOfReviewsSettings

Q = "Which river?"


def review(relevant: bool, supported: bool, answer: str = "null", query: str = "null") -> dict[str, str]:
    return {
        "thoughts": "hm",
        "relevant": str(relevant),
        "supported": str(supported),
        "analysis": "",
        "answer": answer,
        "next_query": query,
    }


def replying(**reviews: dict[str, str]) -> Any:
    def reply(asked: Asked) -> dict[str, str]:
        if asked.wants == "final_content":
            return {"final_content": "It is [1].", "answer": "Vltava"}
        if "information" in asked.text:
            return {"thoughts": "hm", "information": "from memory"}
        return reviews["".join(asked.titles)]

    return reply


def ask(found: dict[str, str], **settings: Any) -> tuple[Any, TableRetriever]:
    retriever = TableRetriever(found)
    prediction = ChainOfReviews(retriever, ChainOfReviewsSettings(**settings))(question=Q)
    assert prediction.failure is None, prediction.failure
    return prediction, retriever


def test_each_review_sees_every_paragraph_so_far(answering):
    engine = answering(replying(AB=review(True, False, query="q2"), ABC=review(True, True, "Vltava")))
    prediction, retriever = ask({Q: "AB", "q2": "BC"})
    assert engine.calls == ["thoughts(A+B)", "thoughts(A+B+C)", "final_content(A+B+C)"]
    assert retriever.queries == [(Q, 5), ("q2", 5)]
    last = prediction.tree.last_path()
    assert [node.passage.id for node in last] == ["A", "B", "C"]
    assert [node.round for node in last] == [1, 1, 2]
    assert [node.ended for node in last] == [None, None, "accepted"]
    assert [piece.answer for piece in prediction.evidence] == ["Vltava"]
    assert [passage.id for passage in prediction.passages] == ["A", "B", "C"]


def test_a_chain_that_is_rejected_ends(answering):
    engine = answering(replying(A=review(False, False, query="q2"), AB=review(True, True, "b")))
    prediction, _ = ask({Q: "A", "q2": "B"})
    assert engine.calls == ["thoughts(A)", "final_content()"]
    assert prediction.tree.nodes[-1].ended == "rejected"
    prediction, _ = ask({Q: "A", "q2": "B"}, relevance_pruning=False)
    assert prediction.tree.nodes[-1].ended == "accepted"


def test_turns_and_paragraphs_are_bounded(answering):
    engine = answering(replying(A=review(True, False, query="q2"), AB=review(True, False, query="q3")))
    prediction, retriever = ask({Q: "AX", "q2": "BX"}, k=1, max_turns=2)
    assert retriever.queries == [(Q, 1), ("q2", 1)]
    assert prediction.tree.nodes[-1].ended == "full depth"
    assert engine.asked[-1].titles == ("A", "B")  # nothing was accepted: what was relevant is read


@pytest.mark.parametrize(
    ("expansion", "calls"),
    [("direct", ["relevant(A)"]), ("cot", ["thoughts(A)"]), ("mpc", ["relevant(A)", "thoughts(A)"])],
)
def test_expansion(answering, expansion, calls):
    engine = answering(replying(A=review(True, False, query="q2")))
    prediction, retriever = ask({Q: "A"}, expansion=expansion)
    assert engine.calls[:-1] == calls
    assert retriever.queries[-1][0] == ("from memory" if expansion == "mpc" else "q2")
    assert prediction.tree.nodes[-1].ended == "nothing retrieved"


def test_the_papers_way_reviews_with_thoughts_as_its_table_13_does():
    assert ChainOfReviewsSettings(preset="paper").expansion == "cot"


def test_a_search_without_a_query_ends(answering):
    answering(replying(A=review(True, False)))
    assert ask({Q: "A"})[0].tree.nodes[-1].ended == "no query"


def test_fusion_is_a_setting(answering):
    engine = answering(replying(A=review(True, True, "a")))
    ask({Q: "A"}, fusion="analysis")
    assert engine.asked[-1].given("passages") is None


def test_nothing_found_leaves_the_lm_to_itself(answering):
    engine = answering(replying())
    assert ask({})[0].answer == "Vltava"
    assert engine.calls == ["final_content()"]
