"""Baselines that solve subquestions: their calls, and what each prompt holds."""

import json
from functools import partial

import pytest
from fakes import ListRetriever

from questree.common.placeholders import fill_in

Q = "Which river flows through the birthplace of Kafka?"
BORN, RIVER = "Where was Kafka born?", "Which river flows through Prague?"
STEP = {"query": BORN, "answer": "Prague"}
TOLD = {"final_content": "Born in Prague [1], on the Vltava [2].", "answer": "Vltava"}
FOUND = {BORN: "Kafka, of Prague.", RIVER: "The Vltava."}


@pytest.fixture
def ask(run):
    """Ask a baseline the question; it searches where Kafka was born, and which river it is."""

    def ask(name, *replies, found=FOUND, **settings):
        return run(name, *replies, TOLD, found=ListRetriever(found), question=Q, **settings)

    return ask


def follow_up(query):
    return {"follow_up": query}


def solved(answer, *references):
    return {"query_answer": answer, "references": list(references)}


recalled = {"query_answer": "Prague"}


def test_self_ask_asks_until_nothing_is_left_to_ask(ask):
    replies = [follow_up(BORN), recalled, follow_up(RIVER), {"query_answer": "null"}, follow_up("null")]
    prediction, asked, _ = ask("self-ask", *replies)
    assert [one.wants for one in asked] == ["follow_up", "query_answer"] * 2 + ["follow_up", "final_content"]
    assert [one.given("solved") for one in asked[:3]] == [[], [], [STEP]]
    assert [one.given("query") for one in (asked[1], asked[3])] == [BORN, RIVER]
    assert all(one.given("passages") is None for one in asked)
    unmarked, unsolved = {"mark": None, "title": None, "support": None}, {"query": RIVER, "answer": None}
    assert asked[5].given("steps") == [STEP | unmarked | {"sure": True}, unsolved | unmarked | {"sure": False}]
    assert [(node.parent, node.source) for node in prediction.tree.nodes] == [(None, "lm"), (0, "unsolved")]
    assert prediction.final_content == "Born in Prague, on the Vltava."


@pytest.mark.parametrize("said", ["Unknown. The article does not mention it.", "No passage tells where [1]."])
def test_words_that_say_why_there_is_no_answer_are_none(said, ask):
    replies = [follow_up(BORN), solved(said, 1), follow_up("None, the steps are enough.")]
    (node,) = ask("self-ask-retrieval", *replies).prediction.tree.nodes
    assert (node.answer, node.source, node.passage) == (None, "unsolved", None)


@pytest.mark.parametrize(
    ("name", "first", "limit"),
    [("self-ask", follow_up(BORN), "max_follow_ups"), ("plan-and-solve", {"plan": [BORN, RIVER, Q]}, "max_steps")],
)
def test_more_subquestions_than_its_limit_are_left_out(name, first, limit, ask):
    assert len(ask(name, first, recalled, **{limit: 1}).prediction.tree.nodes) == 1


def test_self_ask_with_retrieval_reads_its_intermediate_answers(ask):
    replies = [follow_up(BORN), solved("Prague [1]", 1), follow_up(RIVER), solved("Vltava"), follow_up("null")]
    prediction, asked, queries = ask("self-ask-retrieval", *replies)
    assert queries == [BORN, RIVER]
    assert asked[1].given("passages") == ["[1] T0 | Kafka, of Prague."]
    assert asked[3].given("passages") == ["[1] T1 | The Vltava."]
    steps = [(step["mark"], step["support"]) for step in asked[5].given("steps")]
    assert steps == [(1, "Kafka, of Prague."), (None, None)]
    assert [node.source for node in prediction.tree.nodes] == ["completed", "lm"]
    assert [passage.id for passage in prediction.passages] == ["p0", "p1"]
    assert [passage.id for passage in prediction.references] == ["p0"]  # the other answer rests on none


def test_self_ask_may_answer_the_question_from_one_search_first(ask):
    replies, found = [solved("Vltava [1]", 1), follow_up("null")], {Q: "The Vltava."}
    prediction, asked, _ = ask("self-ask-retrieval", *replies, found=found, first_search=7)
    assert [one.wants for one in asked] == ["query_answer", "follow_up", "final_content"]
    assert [node.query for node in prediction.tree.nodes] == [Q]


def test_a_passage_that_does_not_hold_the_answer_is_not_cited(ask):
    prediction, asked, _ = ask("self-ask-retrieval", follow_up(BORN), solved("Vienna", 1), follow_up("null"))
    (step,) = asked[-1].given("steps")
    assert (step["answer"], step["mark"], step["support"]) == ("Vienna", None, None)
    assert (prediction.final_content, prediction.references) == ("Born in Prague, on the Vltava.", [])


@pytest.mark.parametrize(
    ("name", "first"),
    [("least-to-most", "subquestions"), ("plan-and-solve", "plan"), ("plan-and-solve-retrieval", "plan")],
)
def test_all_subquestions_come_first_and_later_ones_stand_on_earlier_answers(ask, name, first):
    reads = {"references": [1]} if name.endswith("retrieval") else {}
    replies = [{"query_answer": answer, **reads} for answer in ("Prague", "Vltava")]
    prediction, asked, queries = ask(name, {first: [BORN, "Which river flows through #1?"]}, *replies)
    assert [one.wants for one in asked] == [first, "query_answer", "query_answer", "final_content"]
    assert [one.given("query") for one in asked[1:3]] == [BORN, RIVER]
    assert [one.given("solved") for one in asked[1:3]] == [[], [STEP]]
    assert queries == ([BORN, RIVER] if reads else [])
    assert asked[2].given("passages") == (["[1] T1 | The Vltava."] if reads else None)
    assert [passage.id for passage in prediction.references] == (["p0", "p1"] if reads else [])
    assert [node.parent for node in prediction.tree.nodes] == [None, 0]


@pytest.mark.parametrize(("name", "first"), [("least-to-most", "subquestions"), ("plan-and-solve", "plan")])
def test_a_number_sign_of_the_question_is_no_earlier_answer(run, name, first):
    asked = run(name, {first: []}, TOLD, question="Which #1 hit names the birthplace of Kafka?").asked
    assert asked[0].given("question") == "Which No. 1 hit names the birthplace of Kafka?"


def test_an_unknown_answer_is_not_filled_in():
    assert fill_in("#1 or #2 or #3?", ["Prague", None]) == "Prague or #2 or #3?"


@pytest.mark.parametrize(("name", "first"), [("least-to-most", "subquestions"), ("plan-and-solve", "plan")])
@pytest.mark.parametrize(("written", "left"), [(["", BORN, " ", "null", RIVER], [BORN, RIVER]), (["", ""], [])])
def test_a_subquestion_without_text_is_left_out(ask, name, first, written, left):
    prediction, asked, _ = ask(name, {first: written}, *[{"query_answer": None}] * len(left))
    assert [one.given("query") for one in asked[1:-1]] == left
    assert (prediction.answer, prediction.failure) == ("Vltava", None)


def test_a_subquestion_about_an_unknown_answer_says_what_is_meant(ask):
    plan = {"plan": [BORN, "Which river flows through #1?", "How long is #2?"]}
    *_, queries = ask("plan-and-solve-retrieval", plan, solved("null"), solved("Vltava"), solved("430 km"), found={})
    river = "Which river flows through (the answer to: Where was Kafka born)?"
    assert queries == [BORN, river, "How long is Vltava?"]


class Thinking:
    """Proposes two subquestions from each path, and likes paths by what they hold."""

    def __init__(self, complete: str | None = None, promises: dict[str, float] | None = None):
        self.complete, self.promises = complete, promises or {"b": 0.9, "ba": 0.8}

    def __call__(self, asked):
        solved = [step["query"] for step in asked.given("solved") or []]
        if asked.wants == "follow_ups":
            stem = "".join(solved[-1:])
            return {"follow_ups": [f"{stem}a", f"{stem}b", f"{stem}c"]}
        if asked.wants == "query_answer":
            return {"query_answer": f"answer to {asked.given('query')}", "references": [1]}
        if asked.wants == "complete":
            end = solved[-1]
            return {"complete": json.dumps(end == self.complete), "promise": self.promises.get(end, 0.1)}
        return {"final_content": "So.", "answer": "done"}


@pytest.fixture
def think(run):
    """Ask Tree of Thoughts with an LM that thinks so."""
    found = {query: f"The answer to {query}." for query in ("a", "b", "aa", "ab", "ba", "bb")}
    return partial(run, "tree-of-thought", found=ListRetriever(found), question=Q, candidates=2)


@pytest.mark.parametrize("promises", [{"b": 0.9, "ba": 0.8}, {"b": 90, "ba": 0.8}], ids=["shares", "in percent too"])
def test_tree_of_thought_goes_on_with_the_best(promises, think):
    prediction, asked, queries = think(Thinking(promises=promises), width=1, max_depth=2)
    assert [one.wants for one in asked] == [
        *["follow_ups", "query_answer", "query_answer", "complete", "complete"] * 2,
        "final_content",
    ]
    assert [one.given("count") for one in asked if one.wants == "follow_ups"] == ["2", "2"]
    assert sorted(queries) == ["a", "b", "ba", "bb"]
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == ["b", "ba"]
    assert [(step["query"], step["mark"]) for step in asked[-1].given("steps")] == [("b", 1), ("ba", 2)]
    assert len(prediction.passages) == 4


def test_tree_of_thought_ends_at_a_complete_path_and_keeps_its_width(think):
    prediction, asked, _ = think(Thinking(complete="aa"), width=2, max_depth=4)
    assert [one.wants for one in asked].count("follow_ups") == 3  # of the root, then of both its paths
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == ["a", "aa"]


class Ending(Thinking):
    """Proposes nothing after "b", the path that it likes best."""

    def __call__(self, asked):
        if asked.wants == "follow_ups" and [step["query"] for step in asked.given("solved")] == ["b"]:
            return {"follow_ups": []}
        return super().__call__(asked)


def test_tree_of_thought_keeps_its_best_path_when_nothing_is_proposed_for_it(think):
    prediction, asked, _ = think(Ending(), width=2, max_depth=3)
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == ["b"]
    proposed_for = [[s["query"] for s in one.given("solved")] for one in asked if one.wants == "follow_ups"]
    assert sorted(proposed_for) == [[], ["a"], ["a", "aa"], ["b"]]  # it is not asked again about the path that ended


def test_without_a_thought_the_lm_answers_alone(run):
    prediction = run("tree-of-thought", {"follow_ups": []}, TOLD).prediction
    assert (prediction.answer, prediction.tree.nodes) == ("Vltava", [])
