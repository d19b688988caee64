"""Tree of Reviews, and its control, Chain of Reviews, call by call on hand-made cases (Li et al., 2024)."""

import threading
from functools import partial
from typing import Any

import dspy
import pytest
from answering import AlikeRetriever, Asked, Gate, TableRetriever

from questree.common.errors import QuestreeError
from questree.programs import ChainOfReviewsSettings, ReasoningTree, TreeOfReviews, TreeOfReviewsSettings
from questree.programs.evidence import count_tokens
from questree.signatures.reviews import ReviewParagraphs, ReviewParagraphsCoT

Q = "Which river flows through the birthplace of the author of The Metamorphosis?"
REJECT = {"relevant": "false", "supported": "false", "analysis": "", "answer": "null", "next_query": "null"}


def search(query: str = "null", relevant: bool = True) -> dict[str, str]:
    return {"relevant": str(relevant), "supported": "false", "analysis": "", "answer": "null", "next_query": query}


def accept(answer: str, analysis: str = "") -> dict[str, str]:
    return {"relevant": "true", "supported": "true", "analysis": analysis, "answer": answer, "next_query": "null"}


def replying(reviews: dict[str, dict[str, str]], fused: str = "Vltava", content: str = "It is [1].") -> Any:
    """An LM whose review of a path is listed by its titles; a completion of a path asks for ``more+<titles>``."""

    def reply(asked: Asked) -> dict[str, Any]:
        titles = "".join(asked.titles)
        if asked.wants == "final_content":
            return {"final_content": content, "answer": fused, "sure": True}
        if "information" in asked.text:
            return {"thoughts": "hm", "information": f"more+{titles}"}
        return {"thoughts": "hm", **reviews[titles]} if asked.wants == "thoughts" else reviews[titles]

    return reply


def ended(prediction: Any) -> dict[str, str | None]:
    """Why each branch ended, by the titles of its path."""
    tree = prediction.tree
    return {"".join(step.passage.title for step in tree.path_to(node)): node.ended for node in tree.nodes}


# A small case: A needs more, and both of its searches end; X is irrelevant; C is enough by itself.
FOUND = {Q: "AXC", "more+A": "BD", "more+AB": "E"}
REVIEWS = {
    "A": search(),
    "AB": search(),
    "ABE": accept("Vltava", "E names it [3]."),
    "AD": REJECT,
    "X": REJECT,
    "C": accept("the Vltava"),
}


@pytest.fixture
def ask(run):
    """Ask Tree of Reviews as its paper has it, with an LM whose reviews are listed, or that replies as a function."""

    def ask(reviews=REVIEWS, found=FOUND, name="tree-of-reviews", preset="paper", **how):
        reply = replying(reviews) if isinstance(reviews, dict) else reviews
        return run(name, reply, found=found, question=Q, preset=preset, **how)

    return ask


@pytest.fixture
def ask_best(ask):
    """Ask with the review of our own, by default."""
    return partial(ask, preset="best")


@pytest.fixture
def ask_chain(ask):
    """Ask Chain of Reviews, whose review thinks before it judges."""
    return partial(ask, name="chain-of-reviews", preset="best")


def test_depth_first_is_the_papers_order_call_for_call(ask):
    prediction, asked, queries = ran = ask(widths=(5, 3, 3))
    assert ran.calls == [
        "relevant(A)",
        "thoughts(A)",
        "relevant(A+B)",
        "thoughts(A+B)",
        "relevant(A+B+E)",
        "relevant(A+D)",
        "relevant(X)",
        "relevant(C)",
        "final_content(A+B+E+C)",
    ]
    assert queries == [(Q, 5), ("more+A", 3), ("more+AB", 3)]
    assert all(one.given("question") == Q for one in asked)
    assert asked[4].given("passages") == ["[1] A | text of A", "[2] B | text of B", "[3] E | text of E"]
    assert asked[-1].given("assertions") == [
        {"analysis": "E names it [3].", "answer": "Vltava", "references": [1, 2, 3]},
        {"analysis": "the Vltava", "answer": "the Vltava", "references": [4]},
    ]
    assert asked[-1].given("passages")[3] == "[4] C | text of C"
    assert prediction.answer == "Vltava"
    assert [passage.id for passage in prediction.references] == ["A"]
    assert prediction.final_content == "It is [1]."
    assert prediction.spent.calls == 9


def test_the_tree_records_every_review_and_why_each_branch_ended(ask):
    prediction = ask().prediction
    assert ended(prediction) == {
        "A": None,
        "X": "rejected",
        "C": "accepted",
        "AB": None,
        "AD": "rejected",
        "ABE": "accepted",
    }
    first = prediction.tree.nodes[0]
    assert (first.action, first.next_query) == ("search", "more+A")
    assert (first.review.relevant, first.review.supported) == (True, False)
    assert [node.round for node in prediction.tree.nodes] == [1, 1, 1, 2, 2, 3]
    assert [node.answer for node in prediction.tree.nodes] == [None, None, "the Vltava", None, None, "Vltava"]
    assert [piece.answer for piece in prediction.evidence] == ["Vltava", "the Vltava"]
    assert ReasoningTree.model_validate_json(prediction.tree.model_dump_json()) == prediction.tree


def meeting(*groups: set[str]) -> Any:
    """Calls of a group wait for each other; a call that is made alone would wait in vain."""
    barriers = [(group, threading.Barrier(len(group))) for group in groups]
    return lambda asked: next((barrier for group, barrier in barriers if repr(asked) in group), None)


def test_level_order_reviews_the_paths_of_a_level_at_the_same_time(ask):
    meet = meeting(
        {"relevant(A)", "relevant(X)", "relevant(C)"},
        {"thoughts(A)", "thoughts(X)"},  # expansions as well
        {"relevant(A+B)", "relevant(A+D)", "relevant(X+Y)"},  # cousins as well
    )
    reviews, found = {**REVIEWS, "X": search(), "XY": REJECT}, {**FOUND, "more+X": "Y"}
    prediction, asked, _ = ask(reviews, found, order="level", meet=meet)
    assert len(asked) == 11
    assert ended(prediction)["ABE"] == "accepted"


def meeting_late(late: str, early: str) -> dict[str, Any]:
    """One call waits until the other is answered."""
    gate = Gate()

    def reply(asked: Asked) -> Any:
        if repr(asked) == early:
            gate.opened.set()
        return replying(REVIEWS)(asked)

    return {"reviews": reply, "meet": lambda asked: gate if repr(asked) == late else None}


@pytest.mark.parametrize(("late", "early"), [("relevant(A)", "relevant(C)"), ("relevant(C)", "thoughts(A)")])
def test_level_order_does_not_depend_on_which_reply_comes_first(ask, late, early):
    """C is accepted, and A's search finds it again: pruned, whether C's review or A's search ends first."""
    prediction = ask(found={**FOUND, "more+A": "BCD"}, order="level", **meeting_late(late, early)).prediction
    assert ended(prediction)["AC"] == "repeated"
    assert [node.passage.id for node in prediction.tree.nodes] == list("AXCBCDE")
    assert [piece.answer for piece in prediction.evidence] == ["Vltava", "the Vltava"]


def test_widths_are_levels_and_how_many_are_retrieved_at_each(ask):
    prediction, _, queries = ask({"A": search(), "AB": search(), "X": REJECT}, widths=(2, 1))
    assert queries == [(Q, 2), ("more+A", 1)]
    assert ended(prediction) == {"A": None, "X": "rejected", "AB": "full depth"}


@pytest.mark.parametrize(("expansion", "first", "thoughts"), [("direct", "relevant", None), ("cot", "thoughts", "hm")])
def test_an_expansion_searches_with_the_reviews_query_and_cot_thinks_before(ask, expansion, first, thoughts):
    reviews = {"A": search("who is A?"), "AB": accept("b")}
    ran = ask(reviews, {Q: "A", "who is A?": "B"}, expansion=expansion)
    assert ran.calls[:2] == [f"{first}(A)", f"{first}(A+B)"]
    assert ran.path[0].review.thoughts == thoughts


def test_a_program_has_the_predictors_of_its_settings_only():
    def predictors(**settings: Any) -> dict[str, str]:
        program = TreeOfReviews(None, TreeOfReviewsSettings(preset="paper", **settings))
        return {name: predictor.signature.__name__ for name, predictor in program.named_predictors()}

    assert predictors(expansion="mpc", fusion="analysis") == {
        "paragraph_review.review": ReviewParagraphs.__name__,
        "missing_paragraph": "CompleteParagraphs",
        "evidence_fusion.fuse": "FuseAnalyses",
    }
    assert predictors(expansion="cot", fusion="paragraph") == {
        "paragraph_review.review": ReviewParagraphsCoT.__name__,
        "evidence_fusion.fuse": "FuseParagraphs",
    }


@pytest.mark.parametrize(
    ("fusion", "sees_assertions", "sees_passages"),
    [("analysis", True, False), ("paragraph", False, True), ("evidence", True, True)],
)
def test_fusion_reads_assertions_or_passages_or_both(ask, fusion, sees_assertions, sees_passages):
    prediction, (*_, fused), _ = ask({"A": accept("a")}, {Q: "A"}, fusion=fusion)
    assert (fused.given("assertions") is not None) == sees_assertions
    assert (fused.given("passages") is not None) == sees_passages
    assert [passage.id for passage in prediction.references] == ["A"]


EVIDENCE = {"A": accept("a"), "X": search(), "XA": REJECT, "XB": REJECT}
TWICE, SIMILAR = {"A": search(), "AA": REJECT}, {"A": accept("a"), "X": search(), "Xa": REJECT, "XB": REJECT}
BOTH_WAYS = {"A": search(), "B": search(), "AB": REJECT, "BA": REJECT}
IRRELEVANT = {"A": search("more+A", relevant=False), "AB": accept("b")}
SUPPORTED = {**accept("null"), "next_query": "q2"}  # without an answer it is no evidence


@pytest.mark.parametrize(
    ("reviews", "found", "settings", "branch", "why"),
    [
        (IRRELEVANT, {"more+A": "B"}, {}, "A", "rejected"),
        (IRRELEVANT, {"more+A": "B"}, {"relevance_pruning": False}, "AB", "accepted"),
        (EVIDENCE, {Q: "AX", "more+X": "AB"}, {}, "XA", "repeated"),
        (EVIDENCE, {Q: "AX", "more+X": "AB"}, {"repetitive_pruning": False}, "XA", "rejected"),
        (TWICE, {"more+A": "A"}, {}, "AA", "repeated"),
        (TWICE, {"more+A": "A"}, {"repetitive_pruning": False}, "AA", "rejected"),
        ({"A": REJECT, "X": search(), "XA": accept("a")}, {Q: "AX", "more+X": "A"}, {}, "XA", "accepted"),
        (BOTH_WAYS, {Q: "AB", "more+A": "B", "more+B": "A"}, {"set_pruning": True}, "BA", "repeated"),
        (BOTH_WAYS, {Q: "AB", "more+A": "B", "more+B": "A"}, {"set_pruning": True, "order": "level"}, "BA", "repeated"),
        (SIMILAR, {Q: "AX", "more+X": "aB"}, {}, "Xa", "rejected"),
        (SIMILAR, {Q: "AX", "more+X": "aB"}, {"semantic_pruning": 0.9}, "Xa", "near-duplicate"),
        (SIMILAR, {Q: "AX", "more+X": "aB"}, {"semantic_pruning": 0.96}, "Xa", "rejected"),
        ({"A": search()}, {}, {"expansion": "direct"}, "A", "no query"),
        ({"A": search("q2")}, {}, {"expansion": "direct"}, "A", "nothing retrieved"),
        ({"A": SUPPORTED}, {}, {"expansion": "direct"}, "A", "nothing retrieved"),
    ],
)
def test_why_a_branch_ends(ask, reviews, found, settings, branch, why):
    ran = ask(reviews, AlikeRetriever({Q: "A", **found}), **settings)
    assert ended(ran.prediction)[branch] == why
    assert (f"relevant({'+'.join(branch)})" in ran.calls) == (why not in ("repeated", "near-duplicate"))


def test_a_query_at_full_depth_is_searched_for_and_its_best_new_paragraph_is_read_last(ask_best):
    def reply(asked: Asked) -> dict[str, str]:
        review = ours("", query=f"after {''.join(asked.titles)}", adds=asked.titles[-1:] and asked.titles[-1] in "AB")
        return reviewing(review, "It is.")(asked)

    found = {Q: ["A", "Metamorphosis", "X"], "after A": "B", "after AB": "BCD"}
    prediction, *_ = ran = ask_best(reply, found, widths=(5, 3))
    assert ran.calls[-1] == "final_content(A+B+C+Metamorphosis)", "rejected, but the question names it; X is not read"
    assert ended(prediction)["AB"] == ended(prediction)["ABC"] == "full depth"
    assert prediction.rests_on == "memory", "no passage that is cited names the answer"
    assert ask_best(reply, found, widths=(5, 3), second_search=False).queries == [(Q, 5), ("after A", 3)]


def asking(**queries: str) -> Any:
    """An LM that rejects each passage that is listed, and asks for this; that accepts A, and needs more after B."""

    def reply(asked: Asked) -> dict[str, str]:
        if asked.wants == "final_content":
            return {"final_content": "It is.", "answer": "Vltava", "sure": False}
        last = asked.titles[-1]
        if last in queries:
            return ours("", "", queries[last], adds=False)
        return ours(query="" if last == "A" else f"after {last}", facts="It is text of A [1].")

    return reply


AGREED = {"X": "Who?", "Y": "who", "Z": "Who?", "V": "Who?"}


@pytest.mark.parametrize(
    ("found", "calls"),
    [
        ({Q: "XYZV", "Who?": "A"}, "X Y A"),
        ({Q: "XZYV", "Who?": "WA"}, "X Z W A"),
        ({Q: "XBZV", "after B": "YZA"}, "X B B+Y B+Z B+A"),  # B leads on
        ({Q: "BXA", "after B": "XYZ", "Who?": "A"}, "B B+X B+Y B+A"),  # below a path that leads on
        ({Q: "XYZA", "Who?": ""}, "X Y Z A"),
    ],
)
def test_what_two_rejected_siblings_ask_for_is_searched_for_before_the_others_are_reviewed(ask_best, found, calls):
    reply = asking(**AGREED, W="When?")
    ran = ask_best(reply, {"Who?": "", **found})
    assert ran.calls == [f"facts({titles})" for titles in calls.split()]
    assert ("Who?" in ran.asked[-1].given("tried")) == bool(found.get("Who?"))


def test_as_long_as_all_is_rejected_what_was_asked_for_last_is_searched_for_and_all_is_read_in_the_end(ask_best):
    reply = asking(X="one", Y="two", Z="three", V="four")
    prediction, asked, queries = ran = ask_best(reply, {Q: "XV", "one": "Y", "two": "Z", "three": "A", "four": "A"})
    assert [query for query, _ in queries] == [Q, "one", "two"], "as many searches as there are levels"
    assert [one.given("tried") for one in asked[:-1]] == [[], [], ["one"], ["one", "two"]]
    assert (ran.calls[-1], prediction.rests_on) == ("final_content(X+V+Y+Z)", "guess"), "the LM is not sure"
    assert [passage.id for passage in prediction.passages] == ["X", "V", "Y", "Z"]
    assert ask_best(reply, {Q: "XV", "one": "Y"}, second_search=False).queries == [(Q, 5)]


@pytest.mark.parametrize("fusion", ["evidence", "analysis"])
def test_the_marks_of_a_path_are_told_by_the_numbers_of_the_fusion(ask_best, fusion):
    facts = {"A": "It is Prague [1].", "C": "It is Brno [1], and no other [7].", "X": "It is in X [1]."}

    def reply(asked):
        if asked.wants == "final_content":
            return {"final_content": "It is Brno [3].", "answer": "Brno", "sure": True}
        (title,) = asked.titles
        return ours(f"of {title} [1]", facts[title])

    ran = ask_best(reply, {Q: "AXC"}, enough_agreement=None, fusion=fusion)
    assertions = ran.asked[-1].given("assertions")
    assert [one["answer"] for one in assertions] == ["of A", "of X", "of C"]
    told = [(one["analysis"], one["references"]) for one in assertions]
    assert told == [("It is Prague [1].", [1]), ("It is in X [2].", [2]), ("It is Brno [3], and no other.", [3])]


def ours(answer: str = "Vltava", facts: str = "Some.", query: str = "", adds: bool = True) -> dict[str, str]:
    return {"facts": facts, "last_adds": str(adds), "supported_answer": answer, "next_query": query, "guess": ""}


def reviewing(review: dict[str, str], content: str = "Fused.") -> Any:
    """An LM that gives the same review of our own to each path."""
    fused = {"final_content": content, "answer": "Vltava", "sure": True}
    return lambda asked: review if asked.wants == "facts" else fused


@pytest.mark.parametrize(("style", "reviews"), [("label", 2), ("two-label", 2), ("short", 1)])
@pytest.mark.parametrize("preset", ["best", "paper"])
def test_of_a_claim_a_path_that_is_not_enough_is_no_evidence_and_the_answer_may_be_so(ask, preset, style, reviews):
    says = "NOT ENOUGH INFO"
    paper = replying({"A": accept(says), "B": accept(says)}, fused=says)

    def reply(asked: Asked) -> Any:
        return ours(says) if asked.wants == "facts" else paper(asked)

    prediction = ask(reply, {Q: "AB"}, style=style, preset=preset, enough_agreement=1).prediction
    assert sum(node.review is not None for node in prediction.tree.nodes) == reviews
    assert prediction.answer == says
    assert len(prediction.evidence) == (style == "short")  # a film or a song may be called so


@pytest.mark.parametrize(
    ("query", "enough"),
    [
        ("", True),
        ("Nothing.", True),
        ("No fact is missing.", True),
        ("None is missing", True),
        ("**Nothing**", True),
        ("None – the passages tell all of it.", True),
        ("No missing facts", True),
        ("All facts are known.", True),
        ("Nothing's end", False),
        ("None of the passages says where it is", False),
        ("No passage tells where it is", False),
        ("Unknown: where it is", False),
    ],
)
def test_a_path_is_enough_where_nothing_is_asked_for_in_any_words(ask_best, query, enough):
    prediction = ask_best(reviewing(ours(query=query)), {Q: "A"}).prediction
    assert (len(prediction.evidence), prediction.tree.nodes[0].action == "accept") == (enough, enough)


@pytest.mark.parametrize(
    ("facts", "style", "calls", "content"),
    [
        ("It is text of A [1].", "short", 1, "It is text of A [1]. So the answer is Vltava."),
        ("It is Prague [1].", "short", 2, "Fused."),  # the passage does not hold it
        ("It is text of A [1].", "long", 2, "Fused."),
    ],
)
def test_one_assertion_alone_is_the_answer_where_its_facts_keep_a_mark(ask_best, facts, style, calls, content):
    prediction, asked, _ = ask_best(reviewing(ours(facts=facts)), {Q: "AB"}, style=style)
    assert (len(asked), prediction.answer, prediction.final_content) == (calls, "Vltava", content)
    assert [passage.id for passage in prediction.references] == ["A"] * (calls == 1)


def test_evidence_is_read_best_first_as_far_as_the_budget_goes(ask):
    reviews = {title: accept(title) for title in "ABC"}
    prediction, (*_, fused), _ = ask(reviews, {Q: "ABC"}, evidence_tokens=14)  # a piece has 6 for the passage, 1 more
    assert [one["answer"] for one in fused.given("assertions")] == ["A", "B"]
    assert fused.titles == ("A", "B")
    assert [passage.id for passage in prediction.passages] == ["A", "B", "C"]  # found, if not read


def test_text_without_spaces_counts_against_the_budget():
    assert count_tokens("東京は日本の首都である。" * 100) == 900
    assert count_tokens("Tokyo is the capital of Japan. " * 100) == 800  # as four for three words


@pytest.mark.parametrize("found", [accept("a"), search()])
def test_the_best_paragraph_is_read_however_long_it_is(ask, found):
    assert ask(dict.fromkeys("AB", found), {Q: "AB"}, evidence_tokens=1).asked[-1].titles == ("A",)


@pytest.mark.parametrize(
    ("retriever", "found", "content", "ranked"),
    [(TableRetriever, "BCD", "text of C", ["C", "B"]), (AlikeRetriever, "ABC", "b, says text of C", ["B"])],
    ids=["by words", "by the retriever's own embeddings"],
)
def test_more_paragraphs_than_are_scored_are_ranked_by_the_final_response(ask, retriever, found, content, ranked):
    reply = replying({title: accept(title) for title in found}, content=content)
    prediction = ask(reply, retriever({Q: found}), max_passages=len(ranked)).prediction
    assert [passage.id for passage in prediction.passages] == ranked


def test_an_empty_pool_leaves_what_was_relevant_but_not_enough(ask):
    prediction, (*_, fused), _ = ask({"A": search(), "X": REJECT, "AB": REJECT}, {Q: "AX", "more+A": "B"})
    assert fused.given("assertions") == []
    assert fused.titles == ("A",)
    assert [passage.id for passage in prediction.passages] == ["A"]
    assert prediction.evidence == []


def test_nothing_relevant_leaves_the_lm_to_itself(ask):
    prediction, (*_, fused), _ = ask({"X": REJECT}, {Q: "X"})
    assert fused.titles == ()
    assert (prediction.passages, prediction.references, prediction.final_content) == ([], [], "It is.")


def test_semantic_pruning_needs_a_retriever_with_embeddings():
    with pytest.raises(QuestreeError, match="similarity"):
        TreeOfReviews(TableRetriever({}), TreeOfReviewsSettings(preset="paper", semantic_pruning=0.9))


@pytest.mark.parametrize(("order", "reviewed"), [("depth-first", 2), ("level", 4)])
def test_enough_agreement_ends_the_search(ask, order, reviewed):
    reviews = {"A": accept("Vltava"), "B": accept("the Vltava"), "C": search(), "D": accept("Elbe"), "CE": REJECT}
    two, three = (ask(reviews, {Q: "ABCD", "more+C": "E"}, order=order, enough_agreement=enough) for enough in (2, 3))
    assert sum(call.startswith("relevant") for call in two.calls) == reviewed
    assert "enough agreement" in ended(two.prediction).values()
    assert "enough agreement" not in ended(three.prediction).values()


@pytest.mark.parametrize("order", ["depth-first", "level"])
@pytest.mark.parametrize("calls", range(1, 11))
def test_a_question_takes_no_more_calls_than_its_budget(ask, order, calls):
    prediction, asked, _ = ask(order=order, max_calls=calls)
    assert len(asked) == min(calls, 9)  # as many as it may, until the tree is done
    assert ("out of calls" in ended(prediction).values()) == (calls < 9)
    assert asked[-1].wants == "final_content"


def test_a_failed_call_fails_the_question_and_keeps_the_tree(answering):
    def reply(asked: Asked) -> Any:
        return "no idea" if asked.titles == ("A", "B") else replying(REVIEWS)(asked)

    for order in ("depth-first", "level"):
        answering(reply)
        program = TreeOfReviews(TableRetriever(FOUND), TreeOfReviewsSettings(preset="paper", order=order))
        prediction = program(question=Q)
        assert prediction.failure.cause == "unparsable"
        assert prediction.tree.nodes[0].action == "search"


def test_the_answer_style_reaches_review_and_fusion(ask):
    asked = ask({"A": accept("yes")}, {Q: "A"}, style="yes-no").asked
    assert [one.given("answer_style") for one in asked] == ["yes or no", "yes or no"]


def test_the_trace_of_level_order_is_in_the_order_of_the_tree(ask):
    with dspy.context(trace=[]):
        ask(order="level", **meeting_late("relevant(A)", "relevant(C)"))
        traced = [predictor.signature.__name__[0] for predictor, _, _ in dspy.settings.trace]
    assert "".join(traced) == "RC" + "R" + "R" + "RC" + "R" + "R" + "F"  # A, X, C, AB, AD, ABE, fusion


def test_a_review_of_the_chain_sees_every_paragraph_so_far(ask_chain):
    ran = ask_chain({"AB": search("q2"), "ABC": accept("Vltava")}, {Q: "AB", "q2": "BC"})
    assert ran.calls == ["thoughts(A+B)", "thoughts(A+B+C)", "final_content(A+B+C)"]
    assert ran.queries == [(Q, 5), ("q2", 5)]
    last = [(node.passage.id, node.round, node.ended) for node in ran.path]
    assert last == [("A", 1, None), ("B", 1, None), ("C", 2, "accepted")]
    assert [piece.answer for piece in ran.prediction.evidence] == ["Vltava"]
    assert [passage.id for passage in ran.prediction.passages] == ["A", "B", "C"]


LEADS_ON, MISLEADS = {"A": search("q2")}, {"A": search("q2", relevant=False), "AB": accept("b")}


@pytest.mark.parametrize(
    ("reviews", "found", "settings", "calls", "query", "why"),
    [
        (MISLEADS, {"q2": "B"}, {}, ["thoughts(A)"], Q, "rejected"),
        (MISLEADS, {"q2": "B"}, {"relevance_pruning": False}, ["thoughts(A)", "thoughts(A+B)"], "q2", "accepted"),
        (LEADS_ON, {}, {"expansion": "direct"}, ["relevant(A)"], "q2", "nothing retrieved"),
        (LEADS_ON, {}, {"expansion": "cot"}, ["thoughts(A)"], "q2", "nothing retrieved"),
        (LEADS_ON, {}, {"expansion": "mpc"}, ["relevant(A)", "thoughts(A)"], "more+A", "nothing retrieved"),
        ({"A": search()}, {}, {}, ["thoughts(A)"], Q, "no query"),
    ],
)
def test_why_a_chain_ends(ask_chain, reviews, found, settings, calls, query, why):
    ran = ask_chain(reviews, {Q: "A", **found}, **settings)
    assert ran.calls[:-1] == calls
    assert (ran.queries[-1][0], ran.path[-1].ended) == (query, why)


def test_turns_of_the_chain_and_their_paragraphs_are_bounded(ask_chain):
    reviews, found = {"A": search("q2"), "AB": search("q3")}, {Q: "AX", "q2": "BX"}
    prediction, asked, queries = ask_chain(reviews, found, k=1, max_turns=2)
    assert ended(prediction)["AB"] == "full depth"
    assert queries == [(Q, 1), ("q2", 1)]
    assert asked[-1].titles == ("A", "B")  # nothing was accepted: what was relevant is read


def test_the_papers_chain_reviews_with_thoughts_as_its_table_13_does():
    assert ChainOfReviewsSettings(preset="paper").expansion == "cot"


def test_the_fusion_of_the_chain_is_a_setting_and_without_passages_the_lm_is_left_to_itself(ask_chain):
    assert ask_chain({"A": accept("a")}, {Q: "A"}, fusion="analysis").asked[-1].given("passages") is None
    assert ask_chain({}, {}).calls == ["final_content()"]


def proving(**reviews: dict[str, str]) -> Any:
    """An LM whose review of a path is listed by its titles; it rejects others."""
    return lambda asked: reviews.get("".join(asked.titles)) or ours("", "", adds=False)


def test_of_a_list_every_path_is_reviewed_and_what_they_prove_is_told_together_without_a_call(ask_best):
    reply = proving(
        A=ours("text of A", "A is text of A [1]."),
        B=ours("text of B", "B is text of B [1]."),
        C=ours("text of C; the text of B", "C is text of C [1]."),
    )
    prediction, *_ = ran = ask_best(reply, {Q: "AXBC"}, style="list")
    assert ran.calls == ["facts(A)", "facts(X)", "facts(B)", "facts(C)"]
    assert ask_best(reply, {Q: "AXBC"}, style="list", evidence_tokens=1).prediction.answers == prediction.answers
    assert sorted(prediction.answers) == ["text of A", "text of B", "text of C"]
    told = "A is text of A [1]. B is text of B [2]. C is text of C [3]."
    assert prediction.final_content == f"{told} So the answer is {prediction.answer}."
    assert [passage.id for passage in prediction.references] == ["A", "B", "C"]
    assert prediction.rests_on == "passages"
    *paths, alone = prediction.tree.nodes
    assert [node.ended for node in paths] == ["accepted", "rejected", "accepted", "accepted"]
    assert (alone.answer, alone.parent) == ("text of C", 3), "an item that its path tells beside another"
    single = ask_best(reply, {Q: "AXBC"})
    assert single.calls == ["facts(A)"], "the question of a single answer ends as before"


def test_a_path_of_a_list_that_proves_an_item_is_searched_on_from_where_another_needs_a_fact(ask_best):
    reply = proving(A=ours("text of A", "A is text of A [1].", "after A"), AB=ours("text of B", "B is text of B [2]."))
    prediction, asked, queries = ask_best(reply, {Q: "A", "after A": "B"}, style="list")
    assert [query for query, _ in queries] == [Q, "after A"]
    assert prediction.answers == ["text of A", "text of B"]
    assert prediction.tree.nodes[0].next_query == "after A"
    assert "these passages prove" in asked[0].given("answer_style")
    assert ask_best(reply, {Q: "A", "after A": "B"}).prediction.evidence[0].answer == "text of B", (
        "not enough by itself"
    )


def test_nothing_is_searched_for_at_full_depth_where_a_path_is_accepted(ask_best):
    reply = proving(A=ours("", query="after A"), B=ours("text of B", "B is text of B [1]."))
    assert ask_best(reply, {Q: "AB", "after A": "C"}, widths=(5,)).queries == [(Q, 5)]


def test_the_paper_reviews_a_list_as_any_question(ask):
    ran = ask({"A": accept("a") | {"next_query": "more"}, "B": accept("b")}, {Q: "AB"}, style="list")
    assert ran.calls == ["relevant(A)", "relevant(B)", "final_content(A+B)"]
    assert "every answer that fits" in ran.asked[0].given("answer_style")
