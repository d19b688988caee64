"""Baselines in which retrieval and reasoning take turns: their calls, and what each prompt holds.

What IRCoT searches for and shows, sentence by sentence: see test_flashrag_client.
"""

import threading

import pytest
from answering import TableRetriever
from dspy import lm15
from fakes import ListRetriever

from questree import program
from questree.lm.parallel import run_parallel
from questree.programs.baselines.ircot import one_a_title, states_fact, without_question_words
from questree.programs.tree_views import as_text
from questree.retrieval import Passage

Q = "Which river?"


def told(content: str = "So.", answer: str = "Vltava") -> dict[str, str]:
    return {"final_content": content, "answer": answer, "sure": "True"}


def thoughts(*said: str) -> list[dict[str, str]]:
    return [{"thought": one} for one in said]


def ids(passages: list[Passage]) -> list[str]:
    return [passage.id for passage in passages]


def test_iter_retgen_retrieves_with_its_last_answer_and_answers_from_that_turn_alone(run):
    second = f"As A says. Elbe {Q}"
    replies = told("As A says [1].", "Elbe"), told("As C says [2].")
    prediction, asked, queries = run("iter-retgen", *replies, found={Q: "AB", second: "BC"})
    assert queries == [(Q, 5), (second, 5)]
    assert list(map(repr, asked)) == ["final_content(A+B)", "final_content(B+C)"]
    assert (prediction.answer, ids(prediction.references), ids(prediction.passages)) == ("Vltava", ["C"], ["B", "C"])
    assert [node.answer for node in prediction.tree.nodes if node.source == "completed"] == ["Elbe", "Vltava"]


def test_ircot_writes_a_sentence_and_retrieves_with_it_until_the_answer_is_there(run):
    replies = [*thoughts("Kafka is of Prague.", "So the answer is Vltava."), told("As B says [2].")]
    found = {"river?": "A", "Kafka of Prague.": "ABC"}
    prediction, asked, queries = run("ircot", *replies, found=found, max_passages=2)
    assert list(map(repr, asked)) == ["thought(A)", "thought(A+B)", "final_content(A+B)"]
    assert [one.given("thoughts") for one in asked] == [[], ["Kafka is of Prague."], None]
    assert queries == [("river?", 5), ("Kafka of Prague.", 5)]  # as the authors do: without question words
    assert (ids(prediction.passages), ids(prediction.references)) == (["A", "B"], ["B"])
    assert prediction.thoughts == ["Kafka is of Prague.", "So the answer is Vltava."]
    assert as_text(prediction.tree).splitlines()[1:4] == [
        "└─● river?  (searched)",
        "   ├─● A  (kept)",
        "   └─● Kafka of Prague.  (searched)",
    ]


def test_ircot_keeps_no_passage_that_the_lm_is_not_shown(run):
    found = {"river?": "ABC", "Kafka of Prague.": "AD"}
    prediction, asked, _ = run("ircot", *thoughts("Kafka is of Prague.", " "), told(), found=found, max_passages=2)
    assert list(map(repr, asked)) == ["thought(A+B)", "thought(A+B)", "final_content(A+B)"]
    fates = {(node.query, node.passage.id): node.ended for node in prediction.tree.nodes if node.passage}
    kept = [place for place, ended in fates.items() if ended == "kept"]
    assert kept == [("river?", "A"), ("river?", "B"), ("Kafka of Prague.", "A")]
    assert len(fates) == 5, "what else was found stays in the tree"


def test_ircot_keeps_one_paragraph_a_title_as_its_authors_do():
    found = [Passage(id=str(n), title=title, text="…") for n, title in enumerate(["A", "B", "A", "", ""])]
    assert one_a_title(found) == [found[0], found[1], found[3], found[4]]


@pytest.mark.parametrize(
    ("sentence", "states"),
    [
        ("So the two are not the same.", False),
        ("Thus, no.", False),
        ("That is, in Prague.", False),
        ("Therefore it flows there.", False),
        ("In all 1,900 + 12 = 1,912 people.", False),
        ("Sofia is a city.", True),
        ("That is the river of Prague.", True),
    ],
)
def test_which_sentences_state_a_fact(sentence, states):
    assert states_fact(sentence) == states


@pytest.mark.parametrize(
    ("query", "kept"), [("Where is Kafka's house?", "Kafka's house?"), ("Who is who", "Who is who")]
)
def test_a_query_of_ircot_has_no_question_words(query, kept):
    assert without_question_words(query) == kept


def test_toolformer_puts_results_into_its_text_and_writes_on(run):
    prediction, asked, queries = run(
        "toolformer",
        {"continuation": "Kafka was born in", "search": "birthplace", "answer": "null"},
        {"continuation": "Prague [1], on", "search": "river", "answer": "null"},
        {"continuation": "the Vltava [2].", "search": "null", "answer": "Vltava"},
        found=ListRetriever({"birthplace": "Kafka, of Prague.", "river": "Prague lies on the Vltava."}),
    )
    assert [one.given("written") for one in asked[:2]] == [
        [],
        ["Kafka was born in", "[Search(birthplace) → [1] T0 | Kafka, of Prague.]"],
    ]
    assert asked[2].given("written")[2:] == ["Prague [1], on", "[Search(river) → [2] T1 | Prague lies on the Vltava.]"]
    assert queries == ["birthplace", "river"]
    assert prediction.answer == "Vltava"
    assert prediction.final_content == "Kafka was born in Prague [1], on the Vltava [2]."
    assert ids(prediction.references) == ["p0", "p1"]
    assert [node.query for node in prediction.tree.nodes if node.source == "query"] == ["birthplace", "river"]


def turn(search: str = "", content: str = "As B says [2].") -> dict[str, str]:
    return {"next_thought": "Hm.", "search": search, **(told("", "") if search else told(content))}


SEARCHED, ANSWERED = [turn("birthplace"), turn("river")], turn()


def test_react_searches_until_a_reply_answers_and_shows_each_passage_once(run):
    found = {"birthplace": "A", "river": "BA"}
    prediction, asked, queries = run("react", *SEARCHED, ANSWERED, found=found)
    assert list(map(repr, asked)) == ["next_thought()", "next_thought(A)", "next_thought(A+B)"]
    searched = ["Hm.", "[Search(birthplace) → passages 1]", "Hm.", "[Search(river) → passages 2, 1]"]
    assert [one.given("trajectory") for one in asked] == [[], searched[:2], searched]
    assert [one.given("searches_left") for one in asked] == ["7", "6", "5"]
    assert queries == [("birthplace", 3), ("river", 3)]
    assert (prediction.answer, prediction.final_content) == ("Vltava", "As B says [1].")
    assert ids(prediction.references) == ["B"]
    assert prediction.spent.calls == 3
    assert [node.query for node in prediction.tree.nodes if node.source == "query"] == ["birthplace", "river"]


@pytest.mark.parametrize(
    ("name", "replies", "settings"),
    [
        ("react", SEARCHED, {"max_turns": 2}),  # its turns are spent
        ("react", ["no"], {}),  # what cannot be parsed is asked for again
        ("react-self-consistency", [], {}),
        ("react-self-consistency", SEARCHED, {}),
    ],
)
def test_react_that_ends_answers_from_what_it_has(run, name, replies, settings):
    prediction, asked, _ = run(name, *replies, ANSWERED, **settings)
    assert (prediction.answer, prediction.spent.calls) == ("Vltava", len(replies) + 1)
    assert asked[-1].given("searches_left") == str(settings.get("max_turns", 7) - len(replies) + replies.count("no"))


def test_react_that_searches_when_it_has_to_answer_has_no_answer(run):
    prediction, asked, queries = run("react", *SEARCHED, found={}, max_turns=1)
    assert (prediction.answer, prediction.rests_on, len(asked), queries) == ("", None, 2, [("birthplace", 3)])


def test_react_leaves_its_oldest_passages_out_when_the_window_is_full(run):
    replies = [*SEARCHED, lm15.ContextLengthError("too long"), ANSWERED]
    prediction, asked, _ = run("react", *replies, found={"birthplace": "A", "river": "B"})
    assert ids(prediction.references) == ["B"]
    assert list(map(repr, asked[2:])) == ["next_thought(A+B)", "next_thought(B)"]


def test_questions_asked_at_the_same_time_have_searches_of_their_own(answering):
    barrier = threading.Barrier(2)

    def reply(asked):
        return turn(content="So [1].") if asked.given("trajectory") else turn(asked.given("question"))

    answering(reply, meet=lambda asked: barrier)
    react = program("react", retriever=TableRetriever({"one?": "A", "two?": "B"}))
    predictions = run_parallel([lambda: react(question="one?"), lambda: react(question="two?")])
    assert [ids(one.references) for one in predictions] == [["A"], ["B"]]


def test_react_that_does_not_finish_gives_way_to_self_consistency(run):
    def reply(asked):
        if asked.wants == "next_thought":
            return turn("river")
        return told("From memory.")

    prediction, asked, _ = run("react-self-consistency", reply, found={"river": "A"}, max_turns=2, samples=3)
    assert [one.wants for one in asked] == ["next_thought"] * 2 + ["final_content"] * 3
    assert [one.temperature for one in asked[2:]] == [0.7] * 3
    assert (prediction.answer, prediction.references) == ("Vltava", [])
    assert prediction.samples == ["Vltava"] * 3
    assert prediction.passages == [], "an answer from memory rests on none"
    assert ids(prediction.seen) == ["A"]
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == [Q]
