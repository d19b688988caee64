"""Baselines that solve subquestions: their calls, and what each prompt holds."""

import json

import pytest
from answering import calls
from fakes import ListRetriever

from questree import program
from questree.common.placeholders import fill_in

Q = "Which river flows through the birthplace of Kafka?"
BORN, RIVER = "Where was Kafka born?", "Which river flows through Prague?"
STEP = {"query": BORN, "answer": "Prague"}
TOLD = {"final_content": "Born in Prague [1], on the Vltava [2].", "answer": "Vltava"}
VIENNA = {"final_content": "Born in Vienna [1]."}


def passages() -> ListRetriever:
    return ListRetriever({BORN: "Kafka, of Prague.", RIVER: "The Vltava."})


def test_self_ask_asks_until_nothing_is_left_to_ask(scripted):
    engine = scripted(
        {"follow_up": BORN},
        {"query_answer": "Prague"},
        {"follow_up": RIVER},
        {"query_answer": "null"},
        {"follow_up": "null"},
        TOLD,
    )
    prediction = program("self-ask")(question=Q)
    asked, unsolved = calls(engine), {"query": RIVER, "answer": None}
    assert [one.wants for one in asked] == ["follow_up", "query_answer"] * 2 + ["follow_up", "final_content"]
    assert [one.given("solved") for one in asked[:3]] == [[], [], [STEP]]
    assert [one.given("query") for one in (asked[1], asked[3])] == [BORN, RIVER]
    assert all(one.given("passages") is None for one in asked)
    unmarked = {"mark": None, "title": None, "support": None}
    assert asked[5].given("steps") == [STEP | unmarked | {"sure": True}, unsolved | unmarked | {"sure": False}]
    assert [(node.parent, node.source) for node in prediction.tree.nodes] == [(None, "lm"), (0, "unsolved")]
    assert prediction.final_content == "Born in Prague, on the Vltava."


@pytest.mark.parametrize("said", ["Unknown. The article does not mention it.", "No passage tells where [1]."])
def test_words_that_say_why_there_is_no_answer_are_none(said, scripted):
    reads = {"query_answer": said, "references": "[1]"}
    scripted({"follow_up": BORN}, reads, {"follow_up": "None, the steps are enough."}, TOLD)
    (node,) = program("self-ask-retrieval", retriever=passages())(question=Q).tree.nodes
    assert (node.answer, node.source, node.passage) == (None, "unsolved", None)


@pytest.mark.parametrize(
    ("name", "first", "limit"),
    [("self-ask", {"follow_up": BORN}, "max_follow_ups"), ("plan-and-solve", {"plan": [BORN, RIVER, Q]}, "max_steps")],
)
def test_more_subquestions_than_its_limit_are_left_out(name, first, limit, scripted):
    scripted(first, {"query_answer": "Prague"}, TOLD)
    assert len(program(name, **{limit: 1})(question=Q).tree.nodes) == 1


def test_self_ask_with_retrieval_reads_its_intermediate_answers(scripted):
    engine = scripted(
        {"follow_up": BORN},
        {"query_answer": "Prague [1]", "references": [1]},
        {"follow_up": RIVER},
        {"query_answer": "Vltava", "references": []},
        {"follow_up": "null"},
        TOLD,
    )
    retriever = passages()
    prediction = program("self-ask-retrieval", retriever=retriever)(question=Q)
    asked = calls(engine)
    assert retriever.queries == [BORN, RIVER]
    assert [one.given("passages") for one in (asked[1], asked[3])] == [
        ["[1] T0 | Kafka, of Prague."],
        ["[1] T1 | The Vltava."],
    ]
    assert [step["mark"] for step in asked[5].given("steps")] == [1, None]
    assert [step["support"] for step in asked[5].given("steps")] == ["Kafka, of Prague.", None]
    assert [node.source for node in prediction.tree.nodes] == ["completed", "lm"]
    assert [passage.id for passage in prediction.passages] == ["p0", "p1"]
    assert [passage.id for passage in prediction.references] == ["p0"]  # the other answer rests on none


def test_self_ask_may_answer_the_question_from_one_search_first(scripted):
    engine = scripted({"query_answer": "Vltava [1]", "references": [1]}, {"follow_up": "null"}, TOLD)
    retriever = ListRetriever({Q: "The Vltava."})
    prediction = program("self-ask-retrieval", retriever=retriever, first_search=7)(question=Q)
    assert [one.wants for one in calls(engine)] == ["query_answer", "follow_up", "final_content"]
    assert [node.query for node in prediction.tree.nodes] == [Q]


def test_a_passage_that_does_not_hold_the_answer_is_not_cited(scripted):
    engine = scripted(
        {"follow_up": BORN}, {"query_answer": "Vienna", "references": [1]}, {"follow_up": "null"}, TOLD | VIENNA
    )
    prediction = program("self-ask-retrieval", retriever=passages())(question=Q)
    (step,) = calls(engine)[-1].given("steps")
    assert (step["answer"], step["mark"], step["support"]) == ("Vienna", None, None)
    assert (prediction.final_content, prediction.references) == ("Born in Vienna.", [])


@pytest.mark.parametrize(
    ("name", "first"),
    [("least-to-most", "subquestions"), ("plan-and-solve", "plan"), ("plan-and-solve-retrieval", "plan")],
)
def test_all_subquestions_come_first_and_later_ones_stand_on_earlier_answers(scripted, name, first):
    reads = {"references": [1]} if name.endswith("retrieval") else {}
    engine = scripted(
        {first: [BORN, "Which river flows through #1?"]},
        {"query_answer": "Prague", **reads},
        {"query_answer": "Vltava", **reads},
        TOLD,
    )
    retriever = passages()
    prediction = program(name, retriever=retriever)(question=Q)
    asked = calls(engine)
    assert [one.wants for one in asked] == [first, "query_answer", "query_answer", "final_content"]
    assert [one.given("query") for one in asked[1:3]] == [BORN, RIVER]
    assert [one.given("solved") for one in asked[1:3]] == [[], [STEP]]
    assert retriever.queries == ([BORN, RIVER] if reads else [])
    assert asked[2].given("passages") == (["[1] T1 | The Vltava."] if reads else None)
    assert [passage.id for passage in prediction.references] == (["p0", "p1"] if reads else [])
    assert [node.parent for node in prediction.tree.nodes] == [None, 0]


@pytest.mark.parametrize(("name", "first"), [("least-to-most", "subquestions"), ("plan-and-solve", "plan")])
def test_a_number_sign_of_the_question_is_no_earlier_answer(scripted, name, first):
    engine = scripted({first: [BORN]}, {"query_answer": "Prague"}, TOLD)
    program(name)(question="Which #1 hit names the birthplace of Kafka?")
    assert calls(engine)[0].given("question") == "Which No. 1 hit names the birthplace of Kafka?"


def test_an_unknown_answer_is_not_filled_in():
    assert fill_in("#1 or #2 or #3?", ["Prague", None]) == "Prague or #2 or #3?"


@pytest.mark.parametrize(("name", "first"), [("least-to-most", "subquestions"), ("plan-and-solve", "plan")])
def test_a_subquestion_without_text_is_left_out(scripted, name, first):
    engine = scripted({first: ["", BORN, " ", "null", RIVER]}, {"query_answer": "Prague"}, {"query_answer": None}, TOLD)
    prediction = program(name)(question=Q)
    assert prediction.failure is None
    assert [one.given("query") for one in calls(engine)[1:3]] == [BORN, RIVER]
    scripted({first: ["", ""]}, TOLD)
    assert program(name)(question=Q).answer == "Vltava"


def test_a_subquestion_about_an_unknown_answer_says_what_is_meant(scripted):
    engine = scripted(
        {"plan": [BORN, "Which river flows through #1?", "How long is #2?"]},
        {"query_answer": "null", "references": []},
        {"query_answer": "Vltava", "references": []},
        {"query_answer": "430 km", "references": []},
        TOLD,
    )
    retriever = ListRetriever({})
    program("plan-and-solve-retrieval", retriever=retriever)(question=Q)
    river = "Which river flows through (the answer to: Where was Kafka born)?"
    assert retriever.queries == [BORN, river, "How long is Vltava?"]
    assert calls(engine)[2].given("query") == river


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


def thinking_retriever() -> ListRetriever:
    return ListRetriever({query: f"The answer to {query}." for query in ("a", "b", "aa", "ab", "ba", "bb")})


@pytest.mark.parametrize("promises", [{"b": 0.9, "ba": 0.8}, {"b": 90, "ba": 0.8}], ids=["shares", "in percent too"])
def test_tree_of_thought_goes_on_with_the_best(promises, answering):
    engine = answering(Thinking(promises=promises))
    retriever = thinking_retriever()
    tree_of_thought = program("tree-of-thought", retriever=retriever, candidates=2, width=1, max_depth=2)
    prediction = tree_of_thought(question=Q)
    assert [one.wants for one in engine.asked] == [
        *["follow_ups", "query_answer", "query_answer", "complete", "complete"] * 2,
        "final_content",
    ]
    assert [one.given("count") for one in engine.asked if one.wants == "follow_ups"] == ["2", "2"]
    assert sorted(retriever.queries) == ["a", "b", "ba", "bb"]
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == ["b", "ba"]
    assert [step["query"] for step in engine.asked[-1].given("steps")] == ["b", "ba"]
    assert [step["mark"] for step in engine.asked[-1].given("steps")] == [1, 2]
    assert len(prediction.passages) == 4


def test_tree_of_thought_ends_at_a_complete_path_and_keeps_its_width(answering):
    engine = answering(Thinking(complete="aa"))
    tree_of_thought = program("tree-of-thought", retriever=thinking_retriever(), candidates=2, width=2, max_depth=4)
    prediction = tree_of_thought(question=Q)
    assert [one.wants for one in engine.asked].count("follow_ups") == 3  # of the root, then of both its paths
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == ["a", "aa"]


class Ending(Thinking):
    """Proposes nothing after "b", the path that it likes best."""

    def __call__(self, asked):
        if asked.wants == "follow_ups" and [step["query"] for step in asked.given("solved")] == ["b"]:
            return {"follow_ups": []}
        return super().__call__(asked)


def test_tree_of_thought_keeps_its_best_path_when_nothing_is_proposed_for_it(answering):
    engine = answering(Ending())
    tree_of_thought = program("tree-of-thought", retriever=thinking_retriever(), candidates=2, width=2, max_depth=3)
    prediction = tree_of_thought(question=Q)
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == ["b"]
    proposed_for = [[s["query"] for s in one.given("solved")] for one in engine.asked if one.wants == "follow_ups"]
    assert sorted(proposed_for) == [[], ["a"], ["a", "aa"], ["b"]]  # it is not asked again about the path that ended


def test_without_a_thought_the_lm_answers_alone(answering):
    answering(lambda asked: {"follow_ups": []} if asked.wants == "follow_ups" else TOLD)
    prediction = program("tree-of-thought", retriever=ListRetriever({}))(question=Q)
    assert (prediction.answer, prediction.tree.nodes) == ("Vltava", [])
