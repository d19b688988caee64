"""Baselines in which retrieval and reasoning take turns: their calls, and what each prompt holds."""

import threading

import pytest
from answering import TableRetriever, calls
from dspy import lm15
from fakes import ListRetriever

from questree import program
from questree.lm.parallel import run_parallel
from questree.programs.baselines.ircot import one_a_title, states_fact, without_question_words
from questree.programs.tree_views import as_text
from questree.retrieval import Passage

Q = "Which river?"


def test_iter_retgen_retrieves_with_its_last_answer_and_answers_from_that_turn_alone(scripted):
    engine = scripted(
        {"final_content": "As A says [1].", "answer": "Elbe"}, {"final_content": "As C says [2].", "answer": "Vltava"}
    )
    second = f"As A says. Elbe {Q}"
    retriever = TableRetriever({Q: "AB", second: "BC"})
    prediction = program("iter-retgen", retriever=retriever)(question=Q)
    assert retriever.queries == [(Q, 5), (second, 5)]
    assert [repr(asked) for asked in calls(engine)] == ["final_content(A+B)", "final_content(B+C)"]
    assert prediction.answer == "Vltava"
    assert [passage.id for passage in prediction.references] == ["C"]
    assert [passage.id for passage in prediction.passages] == ["B", "C"]
    assert [node.answer for node in prediction.tree.nodes if node.source == "completed"] == ["Elbe", "Vltava"]


def test_ircot_writes_a_sentence_and_retrieves_with_it_until_the_answer_is_there(scripted):
    engine = scripted(
        {"thought": "Kafka is of Prague."},
        {"thought": "So the answer is Vltava."},
        {"final_content": "As B says [2].", "answer": "Vltava"},
    )
    retriever = TableRetriever({"river?": "A", "Kafka of Prague.": "ABC"})
    prediction = program("ircot", retriever=retriever, max_passages=2)(question=Q)
    asked = calls(engine)
    assert [repr(one) for one in asked] == ["thought(A)", "thought(A+B)", "final_content(A+B)"]
    assert [one.given("thoughts") for one in asked] == [[], ["Kafka is of Prague."], None]
    assert retriever.queries == [("river?", 5), ("Kafka of Prague.", 5)]  # as the authors do: without question words
    assert [passage.id for passage in prediction.passages] == ["A", "B"]
    assert [passage.id for passage in prediction.references] == ["B"]
    assert prediction.thoughts == ["Kafka is of Prague.", "So the answer is Vltava."]
    assert as_text(prediction.tree).splitlines()[1:4] == [
        "└─● river?  (searched)",
        "   ├─● A  (kept)",
        "   └─● Kafka of Prague.  (searched)",
    ]


def test_ircot_keeps_no_passage_that_the_lm_is_not_shown(scripted):
    found = {"river?": "ABC", "Kafka of Prague.": "AD"}
    engine = scripted({"thought": "Kafka is of Prague."}, {"thought": " "}, {"final_content": "So.", "answer": "V"})
    prediction = program("ircot", retriever=TableRetriever(found), max_passages=2)(question=Q)
    assert [repr(one) for one in calls(engine)] == ["thought(A+B)", "thought(A+B)", "final_content(A+B)"]
    fates = {(node.query, node.passage.id): node.ended for node in prediction.tree.nodes if node.passage}
    kept = [place for place, ended in fates.items() if ended == "kept"]
    assert kept == [("river?", "A"), ("river?", "B"), ("Kafka of Prague.", "A")]
    assert len(fates) == 5, "what else was found stays in the tree"


def test_ircot_keeps_one_paragraph_a_title_as_its_authors_do():
    found = [Passage(id=str(n), title=title, text="…") for n, title in enumerate(["A", "B", "A", "", ""])]
    assert one_a_title(found) == [found[0], found[1], found[3], found[4]]


def test_ircot_keeps_one_sentence_of_a_reply_and_searches_for_facts_alone(scripted):
    engine = scripted(
        {"thought": "J. R. R. Tolkien is of Prague. So the answer is Vltava."},
        {"thought": "Thus, it is on a river."},
        {"thought": "Hence 1900 + 12 = 1912."},
        {"thought": "So the answer is Vltava."},
        {"final_content": "So.", "answer": "Vltava"},
    )
    retriever = TableRetriever({})
    prediction = program("ircot", retriever=retriever)(question=Q)
    assert [query for query, _ in retriever.queries] == ["river?", "J. R. R. Tolkien of Prague."]
    assert prediction.thoughts[:2] == ["J. R. R. Tolkien is of Prague.", "Thus, it is on a river."]
    assert calls(engine)[3].given("thoughts") == prediction.thoughts[:3]


def test_ircot_reads_when_no_thought_is_written(scripted):
    engine = scripted({"thought": " "}, {"final_content": "So.", "answer": "Vltava"})
    prediction = program("ircot", retriever=TableRetriever({}))(question=Q)
    assert (prediction.answer, prediction.thoughts, len(engine.requests)) == ("Vltava", [], 2)


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


def test_toolformer_puts_results_into_its_text_and_writes_on(scripted):
    engine = scripted(
        {"continuation": "Kafka was born in", "search": "birthplace", "answer": "null"},
        {"continuation": "Prague [1], on", "search": "river", "answer": "null"},
        {"continuation": "the Vltava [2].", "search": "null", "answer": "Vltava"},
    )
    retriever = ListRetriever({"birthplace": "Kafka, of Prague.", "river": "Prague lies on the Vltava."})
    prediction = program("toolformer", retriever=retriever)(question=Q)
    asked = calls(engine)
    assert [one.given("written") for one in asked[:2]] == [
        [],
        ["Kafka was born in", "[Search(birthplace) → [1] T0 | Kafka, of Prague.]"],
    ]
    assert asked[2].given("written")[2:] == ["Prague [1], on", "[Search(river) → [2] T1 | Prague lies on the Vltava.]"]
    assert retriever.queries == ["birthplace", "river"]
    assert prediction.answer == "Vltava"
    assert prediction.final_content == "Kafka was born in Prague [1], on the Vltava [2]."
    assert [passage.id for passage in prediction.references] == ["p0", "p1"]
    assert [node.query for node in prediction.tree.nodes if node.source == "query"] == ["birthplace", "river"]


def turn(tool: str, **arguments: str) -> dict[str, object]:
    return {"next_thought": "Hm.", "next_tool_name": tool, "next_tool_args": arguments}


SEARCHED = [turn("search", query="birthplace"), turn("search", query="river")]
EXTRACTED = {"reasoning": "As B says [2].", "answer": "Vltava"}


def test_react_searches_until_it_finishes(scripted):
    engine = scripted(*SEARCHED, turn("finish"), EXTRACTED)
    retriever = TableRetriever({"birthplace": "A", "river": "BA"})
    prediction = program("react", retriever=retriever)(question=Q)
    asked = calls(engine)
    assert [one.wants for one in asked] == ["next_thought"] * 3 + ["reasoning"]
    assert "text of" not in asked[0].text
    assert "[1] A | text of A" in asked[1].text
    assert "[2] B | text of B\n[1] A | text of A" in asked[2].text
    assert retriever.queries == [("birthplace", 3), ("river", 3)]
    assert (prediction.answer, prediction.final_content) == ("Vltava", "As B says [1].")
    assert [passage.id for passage in prediction.references] == ["B"]
    assert prediction.spent.calls == 4
    assert [node.query for node in prediction.tree.nodes if node.source == "query"] == ["birthplace", "river"]


@pytest.mark.parametrize(
    ("name", "replies", "settings"),
    [
        ("react", SEARCHED, {"max_turns": 2}),  # its turns are spent
        ("react", ["no", turn("finish")], {}),  # what cannot be parsed is asked for again
        ("react-self-consistency", [turn("finish")], {}),
        ("react-self-consistency", [*SEARCHED, turn("finish")], {}),
    ],
)
def test_react_that_ends_answers_from_what_it_has(scripted, name, replies, settings):
    scripted(*replies, EXTRACTED)
    prediction = program(name, retriever=TableRetriever({}), **settings)(question=Q)
    assert (prediction.answer, prediction.spent.calls) == ("Vltava", len(replies) + 1)


def test_react_forgets_its_oldest_turn_when_the_window_is_full(scripted):
    full = lm15.ContextLengthError("too long")
    engine = scripted(*SEARCHED, full, turn("finish"), EXTRACTED)
    prediction = program("react", retriever=TableRetriever({"birthplace": "A", "river": "B"}))(question=Q)
    assert prediction.failure is None
    assert "text of A" in engine.prompts[2]
    assert "text of A" not in engine.prompts[3]
    assert "text of B" in engine.prompts[3]


def test_a_retriever_that_fails_under_react_fails_the_question(scripted):
    class Broken(TableRetriever):
        def __call__(self, query, k=1):
            raise OSError("gone")

    engine = scripted(*SEARCHED)
    prediction = program("react", retriever=Broken({}))(question=Q)
    assert (prediction.failure.cause, len(engine.requests)) == ("retrieval", 1)


def test_questions_asked_at_the_same_time_have_searches_of_their_own(answering):
    barrier = threading.Barrier(2)

    def reply(asked):
        if asked.wants == "reasoning":
            return {"reasoning": "So [1].", "answer": "a"}
        question = asked.given("question")
        return turn("finish") if "observation_0" in asked.text else turn("search", query=question)

    answering(reply, meet=lambda asked: barrier)
    react = program("react", retriever=TableRetriever({"one?": "A", "two?": "B"}))
    predictions = run_parallel([lambda: react(question="one?"), lambda: react(question="two?")])
    assert [[passage.id for passage in one.references] for one in predictions] == [["A"], ["B"]]


def test_react_that_does_not_finish_gives_way_to_self_consistency(answering):
    def reply(asked):
        if asked.wants == "next_thought":
            return turn("search", query="river")
        return {"final_content": "From memory.", "answer": "Vltava"}

    engine = answering(reply)
    retriever = TableRetriever({"river": "A"})
    prediction = program("react-self-consistency", retriever=retriever, max_turns=2, samples=3)(question=Q)
    assert [asked.wants for asked in engine.asked] == ["next_thought"] * 2 + ["final_content"] * 3
    assert [asked.temperature for asked in engine.asked[2:]] == [0.7] * 3
    assert (prediction.answer, prediction.references) == ("Vltava", [])
    assert prediction.samples == ["Vltava"] * 3
    assert prediction.passages == [], "an answer from memory rests on none"
    assert [passage.id for passage in prediction.seen] == ["A"]
    assert [node.query for node in prediction.tree.nodes_behind_answer()] == [Q]
