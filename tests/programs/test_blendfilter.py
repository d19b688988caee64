"""BlendFilter, call by call on hand-made cases (methods: Wang et al., EMNLP 2024, section 3)."""

import threading
from typing import Any

import dspy
import pytest
from answering import Asked, Gate, TableRetriever
from pydantic import ValidationError

from questree.lm.call import RETRY_TEMPERATURE
from questree.programs import BlendFilter, BlendFilterSettings
from questree.programs.modules.knowledge import KnowledgeFilter, content_of
from questree.programs.tree_views import as_text
from questree.retrieval import Passage
from questree.signatures.knowledge import FilterKnowledge

Q = "Which river?"
EXTERNAL, INTERNAL = f"Because of A. a {Q}", f"I remember. {Q}"
FOUND = {Q: "AB", EXTERNAL: "BC", INTERNAL: "DA"}


def replying(keep: str = "AC", numbers: Any = None, answers: Any = None) -> Any:
    """An LM that keeps the passages of these titles, or the numbers given."""

    def reply(asked: Asked) -> dict[str, Any]:
        if asked.wants == "passage":
            return {"passage": "I remember."}
        if asked.wants == "topic":
            return {"topic": "rivers"}
        if asked.wants == "reasons":
            kept = [number for number, title in enumerate(asked.titles, start=1) if title in keep]
            return {"reasons": "hm", "kept": kept if numbers is None else numbers}
        answer = (answers or {}).get(asked.temperature, "a")
        return {"final_content": "Because of A [1].", "answer": answer}

    return reply


def ask(style: str = "short", found: dict[str, str] = FOUND, **settings: Any) -> tuple[Any, TableRetriever]:
    retriever = TableRetriever(found)
    prediction = BlendFilter(retriever, BlendFilterSettings(preset="paper", **settings))(question=Q, answer_style=style)
    assert prediction.failure is None, prediction.failure
    return prediction, retriever


def test_the_method(answering):
    engine = answering(replying())
    prediction, retriever = ask()
    filtered = ["reasons(A+B)", "reasons(B+C)", "reasons(D+A)"]
    assert sorted(engine.calls) == ["final_content(A+B)", "final_content(A+C)", "passage()", *filtered, "topic()"]
    assert engine.calls[-1] == "final_content(A+C)"
    assert sorted(retriever.queries) == sorted([(Q, 5), (EXTERNAL, 5), (INTERNAL, 5)])
    assert [passage.id for passage in prediction.retrieved] == ["A", "B", "C", "D"]
    assert [passage.id for passage in prediction.passages] == ["A", "C"]
    assert [passage.id for passage in prediction.references] == ["A"]
    assert prediction.answer == "a"
    filters = [asked for asked in engine.asked if asked.wants == "reasons"]
    assert all(asked.given("topic") == "rivers" for asked in filters)
    assert {asked.given("passages")[0] for asked in filters} == {f"[1] {title} | text of {title}" for title in "ABD"}


def test_the_tree_holds_each_query_with_its_passages_and_what_was_kept(answering):
    answering(replying())
    tree = ask()[0].tree
    assert [(node.blend, node.query) for node in tree.children(None)] == [
        ("original", Q),
        ("external", EXTERNAL),
        ("internal", INTERNAL),
    ]
    assert as_text(tree).splitlines() == [
        Q,
        f"├─● original: {Q}  (searched)",
        "│  ├─● A  (kept)",
        "│  └─○ B  (left out: does not help)",
        f"├─● external: {EXTERNAL}  (searched)",
        "│  ├─○ B  (left out: does not help)",
        "│  └─● C  (kept)",
        f"└─● internal: {INTERNAL}  (searched)",
        "   ├─○ D  (left out: does not help)",
        "   └─● A  (kept)",
    ]


def test_independent_calls_are_in_flight_together(answering):
    augmenting, filtering = threading.Barrier(3), threading.Barrier(3)

    def meet(asked: Asked) -> threading.Barrier | None:
        if asked.wants in ("passage", "topic") or repr(asked) == "final_content(A+B)":
            return augmenting
        return filtering if asked.wants == "reasons" else None

    engine = answering(replying(), meet)
    ask()
    assert len(engine.calls) == 7


def test_the_prediction_does_not_depend_on_which_reply_comes_first(answering):
    gate = Gate()

    def reply(asked: Asked) -> Any:
        if repr(asked) == "reasons(D+A)":
            gate.opened.set()
        return replying("ACD")(asked)

    answering(reply, lambda asked: gate if repr(asked) == "reasons(A+B)" else None)
    assert [passage.id for passage in ask()[0].passages] == ["A", "C", "D"]


@pytest.mark.parametrize(
    ("queries", "retrieved", "asked_for"),
    [
        (["original"], {Q}, set()),
        (["external"], {Q, EXTERNAL}, {"final_content(A+B)"}),
        (["internal"], {INTERNAL}, {"passage()"}),
        (["original", "internal"], {Q, INTERNAL}, {"passage()"}),
    ],
)
def test_any_of_the_queries_can_be_left_out(answering, queries, retrieved, asked_for):
    engine = answering(replying(""))
    prediction, retriever = ask(queries=queries, filter="none", topic=False)
    assert {query for query, _ in retriever.queries} == retrieved
    assert set(engine.calls[:-1]) == asked_for
    assert [node.blend for node in prediction.tree.children(None)] == queries


def test_the_same_queries_are_the_same_setting():
    assert BlendFilterSettings(queries=["internal", "original", "internal"]).queries == ("original", "internal")


@pytest.mark.parametrize("queries", [[], ["both"]])
def test_no_query_and_another_query_are_no_setting(queries):
    with pytest.raises(ValidationError):
        BlendFilterSettings(queries=queries)


def test_higher_order_augmentation_answers_from_what_the_last_one_found(answering):
    engine = answering(replying())
    _, retriever = ask(queries=["external"], hops=2, filter="none")
    assert engine.calls == ["final_content(A+B)", "final_content(B+C)", "final_content(B+C)"]
    assert [query for query, _ in retriever.queries] == [Q, EXTERNAL, EXTERNAL]


@pytest.mark.parametrize(
    ("filter", "calls", "kept"),
    [("union", ["reasons(A+B+C+D)", "topic()"], "A    C  A"), ("none", [], "AB BC DA")],
)
def test_the_union_is_filtered_by_one_call_and_without_a_filter_all_is_kept_and_no_topic_named(
    answering, filter, calls, kept
):
    engine = answering(replying())
    prediction, _ = ask(filter=filter)
    assert sorted(call for call in engine.calls if call.startswith(("reasons", "topic"))) == calls
    assert [passage.id for passage in prediction.passages] == sorted(set(kept) - {" "})
    left = [node.passage.id for node in prediction.tree.nodes if node.passage and node.ended == "kept"]
    assert left == [title for title in kept if title != " "]


@pytest.mark.parametrize(("style", "settings"), [("yes-no", {}), ("short", {"topic": False})])
def test_the_topic_can_be_left_out_and_is_for_yes_no_questions(answering, style, settings):
    engine = answering(replying())
    ask(style, **settings)
    assert "topic()" not in engine.calls
    assert all(asked.given("topic") is None for asked in engine.asked)


def test_nothing_kept_leaves_the_lm_to_itself(answering):
    engine = answering(replying(""))
    prediction, _ = ask("yes-no")
    assert engine.calls[-1] == "final_content()"
    assert (prediction.passages, prediction.references, prediction.final_content) == ([], [], "Because of A.")


def test_numbers_of_no_passage_and_repeated_ones_are_dropped_and_counted(answering):
    answering(replying(numbers=[2, 2, 7, 0]))
    prediction, _ = ask()
    assert [passage.id for passage in prediction.passages] == ["B", "C", "A"]
    assert prediction.misnumbered == 9


def test_the_knowledge_filter_serves_any_program(answering):
    engine = answering(replying(numbers=[2]))
    passages = [Passage(id=name, text=name) for name in "xy"]
    assert KnowledgeFilter(FilterKnowledge)(question="Why?", passages=passages).kept == passages[1:]
    assert KnowledgeFilter(FilterKnowledge)(question="Why?", passages=[]).kept == []
    assert len(engine.calls) == 1


SAMPLED = {"queries": ["original"], "filter": "none", "samples": 3, "sampled_by": "temperature"}


def test_samples_are_drawn_at_different_temperatures_and_the_majority_answers(answering):
    engine = answering(replying(answers={0.0: "x", 0.5: "the y", 1.0: "Y"}))
    prediction, _ = ask(**SAMPLED)
    assert sorted(asked.temperature for asked in engine.asked) == [0.0, 0.5, 1.0]
    assert (prediction.samples, prediction.answer) == (["x", "the y", "Y"], "the y")


def test_a_sample_whose_reply_cannot_be_read_has_no_vote(answering):
    unread = (1.0, RETRY_TEMPERATURE)
    answering(lambda asked: "nonsense" if asked.temperature in unread else replying()(asked))
    assert ask(**SAMPLED)[0].samples == ["a", "a"]


def test_the_retries_of_two_samples_differ_as_well(answering, monkeypatch):
    cities = iter(["Oslo", "Rome", "Bonn"])

    def reply(asked: Asked) -> Any:
        if asked.temperature != RETRY_TEMPERATURE:
            return "nonsense"
        city = next(cities)
        return {"final_content": f"It is {city}.", "answer": city}

    answering(reply)
    dspy.settings.lm.cache = True
    # one after another, so that the cache could give the second the first one's
    monkeypatch.setattr("questree.programs.majority.run_parallel", lambda tasks: [task() for task in tasks])
    assert ask(**SAMPLED)[0].samples == ["Oslo", "Rome", "Bonn"]


@pytest.mark.parametrize(("samples", "top_p"), [(3, [0.5, 1.0]), (5, [0.25, 0.5, 0.75, 1.0])])
def test_in_the_paper_samples_differ_by_top_p_from_0_which_is_sent_as_temperature_0(answering, samples, top_p):
    engine = answering(replying())
    ask(**SAMPLED | {"samples": samples, "sampled_by": "top_p"})
    sampling = {(request.config.temperature, request.config.top_p) for request in engine.requests}
    assert sampling == {(0.0, None), *((1.0, value) for value in top_p)}


def test_a_single_answer_is_drawn_at_the_lms_own_temperature(answering):
    engine = answering(replying())
    assert ask(**SAMPLED | {"samples": 1})[0].samples == ["a"]
    assert engine.asked[-1].temperature is None


def judging(useful: str = "AC") -> Any:
    """Make an LM that judges each passage by its title."""

    def reply(asked: Asked) -> dict[str, Any]:
        if asked.wants == "judgements":
            titles = enumerate(asked.titles, start=1)
            return {"judgements": [{"number": n, "says": "hm", "useful": title in useful} for n, title in titles]}
        return replying()(asked)

    return reply


def test_by_default_each_passage_is_judged_once_and_the_question_stands_first(answering):
    first = {Q: "AB", f"{Q} Because of A. a": "BC", f"{Q} I remember.": "DA"}
    engine, retriever = answering(judging()), TableRetriever(first)
    prediction = BlendFilter(retriever)(question=Q)
    assert sorted(query for query, _ in retriever.queries) == sorted(first)
    assert sorted(engine.calls) == ["final_content(A+B)", "final_content(A+C)", "judgements(A+B+C+D)", "passage()"]
    assert [passage.id for passage in prediction.passages] == ["A", "C"]


def test_a_passage_that_does_not_hold_what_is_told_is_not_cited(answering):
    def reply(asked: Asked) -> dict[str, Any]:
        if asked.wants == "final_content":
            return {"final_content": "It is in Prague [1], as text of C says [2].", "answer": "a"}
        return judging()(asked)

    answering(reply)
    prediction = BlendFilter(TableRetriever(FOUND), BlendFilterSettings(queries=["original"]))(question=Q)
    assert "Prague," in prediction.final_content, "nothing that was found says anything of Prague"


@pytest.mark.parametrize(
    ("draft", "answer", "content"),
    [
        ("I do not know who wrote it. Ada was born in Ulm. So the answer is Ulm.", "Ulm", "Ada was born in Ulm."),
        ("Ada was born in Ulm.", "Ulm, Germany", "Ada was born in Ulm. Ulm, Germany"),
        ("I don’t know when, but Ada died in Rome.", "Rome", "Ada died in Rome."),
        ("No passage says when; Ada died about 1900.", "1900", "Ada died about 1900."),
        ("Ada lived in Ulm, but it is not told when.", "", "Ada lived in Ulm"),
        ("The passages say that Ada lived in Rome.", "Rome", "The passages say that Ada lived in Rome."),
        ("I do not know.", "Unknown", ""),
    ],
)
def test_a_draft_adds_its_content_to_a_query(draft, answer, content):
    assert content_of(draft, answer) == content
