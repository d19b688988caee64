"""A plan as data: its levels, its comparisons, and what its prompts hold."""

Q = "Which is older, Ama or the work of the painter of Bel?"
PLAN = [
    {"asks": "lookup", "query": "From when is Ama?"},
    {"asks": "lookup", "query": "Who painted Bel?"},
    {"asks": "lookup", "query": "From when is the work of #2?"},
    {"asks": "earliest", "query": "Ama: #1; the work: #3"},
]
FOUND = {"From when is Ama?": "A", "Who painted Bel?": "B", "From when is the work of text of B?": "C"}


def looked_up(*answers: tuple[str | None, int]):
    return {"looked_up": [{"answer": answer, "passage": passage} for answer, passage in answers]}


def traced(answer: str):
    return {"final_content": "So.", "answer": answer}


def test_steps_that_need_no_other_are_answered_in_one_call_and_comparisons_in_none(run):
    replies = looked_up(("1911", 1), ("text of B", 2)), looked_up(("1905", 1)), traced("the work")
    prediction, asked, queries = run("plan-graph", {"steps_planned": PLAN}, *replies, found=FOUND, question=Q)
    assert [query for query, _ in queries] == list(FOUND)
    assert "From when is Ama?" in asked[1].text
    assert "Who painted Bel?" in asked[1].text
    assert [node.answer for node in prediction.tree.nodes] == ["1911", "text of B", "1905", "the work"]
    assert prediction.tree.nodes[1].support == "text of B"
    assert prediction.answer == "the work"


def test_a_step_without_an_answer_is_described_in_later_ones(run):
    plan = [PLAN[1], {"asks": "lookup", "query": "From when is the work of #1?"}]
    replies = looked_up((None, 0)), looked_up((None, 7)), traced("x")
    path = run("plan-graph", {"steps_planned": plan}, *replies).path
    assert [node.source for node in path] == ["unsolved", "unsolved"]
    assert "(the answer to: Who painted Bel)" in path[1].query


def test_plans_that_go_nowhere_end(run):
    """Steps that need themselves or later ones, replies that are too short, and no plan at all."""
    plan = [{"asks": "lookup", "query": "What of #1 and #2?"}, {"asks": "same", "query": "#9"}]
    assert run("plan-graph", {"steps_planned": plan}, looked_up(), traced("x")).prediction.answer == "x"
    assert run("plan-graph", {"steps_planned": []}, traced("y")).prediction.answer == "y"
