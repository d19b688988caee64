"""BlendFilter, call by call on hand-made cases (methods: Wang et al., EMNLP 2024, section 3)."""

import threading
from typing import Any

import dspy
import pytest
from answering import Asked, Gate, TableRetriever
from pydantic import ValidationError

from questree import program
from questree.lm.call import RETRY_TEMPERATURE
from questree.programs import BlendFilterSettings
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
        return {"final_content": "Because of A [1].", "answer": answer, "sure": True}

    return reply


@pytest.fixture
def ask(run):
    """Ask BlendFilter as its paper has it, with an LM that keeps the passages of these titles, or replies so."""

    def ask(keep="AC", found=FOUND, preset="paper", **how):
        reply = replying(keep) if isinstance(keep, str) else keep
        return run("blendfilter", reply, found=found, question=Q, preset=preset, **how)

    return ask


def ids(passages: list[Passage]) -> list[str]:
    return [passage.id for passage in passages]


def test_the_method(ask):
    prediction, asked, queries = ran = ask()
    filtered = ["reasons(A+B)", "reasons(B+C)", "reasons(D+A)"]
    assert sorted(ran.calls) == ["final_content(A+B)", "final_content(A+C)", "passage()", *filtered, "topic()"]
    assert ran.calls[-1] == "final_content(A+C)"
    assert sorted(queries) == sorted([(Q, 5), (EXTERNAL, 5), (INTERNAL, 5)])
    assert ids(prediction.retrieved) == ["A", "B", "C", "D"]
    assert (ids(prediction.passages), ids(prediction.references)) == (["A", "C"], ["A"])
    assert prediction.answer == "a"
    filters = [one for one in asked if one.wants == "reasons"]
    assert all(one.given("topic") == "rivers" for one in filters)
    assert {one.given("passages")[0] for one in filters} == {f"[1] {title} | text of {title}" for title in "ABD"}


def test_the_tree_holds_each_query_with_its_passages_and_what_was_kept(ask):
    tree = ask().prediction.tree
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


def test_independent_calls_are_in_flight_together(ask):
    augmenting, filtering = threading.Barrier(3), threading.Barrier(3)

    def meet(asked: Asked) -> threading.Barrier | None:
        if asked.wants in ("passage", "topic") or repr(asked) == "final_content(A+B)":
            return augmenting
        return filtering if asked.wants == "reasons" else None

    assert len(ask(meet=meet).asked) == 7


def test_the_prediction_does_not_depend_on_which_reply_comes_first(ask):
    gate = Gate()

    def reply(asked: Asked) -> Any:
        if repr(asked) == "reasons(D+A)":
            gate.opened.set()
        return replying("ACD")(asked)

    ran = ask(reply, meet=lambda asked: gate if repr(asked) == "reasons(A+B)" else None)
    assert ids(ran.prediction.passages) == ["A", "C", "D"]


@pytest.mark.parametrize(
    ("queries", "retrieved", "asked_for"),
    [
        (["original"], {Q}, set()),
        (["external"], {Q, EXTERNAL}, {"final_content(A+B)"}),
        (["internal"], {INTERNAL}, {"passage()"}),
        (["original", "internal"], {Q, INTERNAL}, {"passage()"}),
    ],
)
def test_any_of_the_queries_can_be_left_out(ask, queries, retrieved, asked_for):
    ran = ask("", queries=queries, filter="none", topic=False)
    assert {query for query, _ in ran.queries} == retrieved
    assert set(ran.calls[:-1]) == asked_for
    assert [node.blend for node in ran.prediction.tree.children(None)] == queries


def test_the_same_queries_are_the_same_setting():
    assert BlendFilterSettings(queries=["internal", "original", "internal"]).queries == ("original", "internal")


@pytest.mark.parametrize("queries", [[], ["both"]])
def test_no_query_and_another_query_are_no_setting(queries):
    with pytest.raises(ValidationError):
        BlendFilterSettings(queries=queries)


def test_higher_order_augmentation_answers_from_what_the_last_one_found(ask):
    ran = ask(queries=["external"], hops=2, filter="none")
    assert ran.calls == ["final_content(A+B)", "final_content(B+C)", "final_content(B+C)"]
    assert [query for query, _ in ran.queries] == [Q, EXTERNAL, EXTERNAL]


@pytest.mark.parametrize(
    ("filter", "calls", "kept"),
    [("union", ["reasons(A+B+C+D)", "topic()"], "A    C  A"), ("none", [], "AB BC DA")],
)
def test_the_union_is_filtered_by_one_call_and_without_a_filter_all_is_kept_and_no_topic_named(
    ask, filter, calls, kept
):
    prediction, *_ = ran = ask(filter=filter)
    assert sorted(call for call in ran.calls if call.startswith(("reasons", "topic"))) == calls
    assert ids(prediction.passages) == sorted(set(kept) - {" "})
    left = [node.passage.id for node in prediction.tree.nodes if node.passage and node.ended == "kept"]
    assert left == [title for title in kept if title != " "]


@pytest.mark.parametrize(("style", "settings"), [("yes-no", {}), ("short", {"topic": False})])
def test_the_topic_can_be_left_out_and_is_for_yes_no_questions(ask, style, settings):
    ran = ask(style=style, **settings)
    assert "topic()" not in ran.calls
    assert all(asked.given("topic") is None for asked in ran.asked)


def test_nothing_kept_leaves_the_lm_to_itself(ask):
    prediction, *_ = ran = ask("", style="yes-no")
    assert ran.calls[-1] == "final_content()"
    assert (prediction.passages, prediction.references, prediction.final_content) == ([], [], "Because of A.")


def test_numbers_of_no_passage_and_repeated_ones_are_dropped_and_counted(ask):
    prediction = ask(replying(numbers=[2, 2, 7, 0])).prediction
    assert (ids(prediction.passages), prediction.misnumbered) == (["B", "C", "A"], 9)


def test_the_knowledge_filter_serves_any_program(answering):
    engine = answering(replying(numbers=[2]))
    passages = [Passage(id=name, text=name) for name in "xy"]
    assert KnowledgeFilter(FilterKnowledge)(question="Why?", passages=passages).kept == passages[1:]
    assert KnowledgeFilter(FilterKnowledge)(question="Why?", passages=[]).kept == []
    assert len(engine.calls) == 1


SAMPLED = {"queries": ["original"], "filter": "none", "samples": 3, "sampled_by": "temperature"}


def test_samples_are_drawn_at_different_temperatures_and_the_majority_answers(ask):
    prediction, asked, _ = ask(replying(answers={0.0: "x", 0.5: "the y", 1.0: "Y"}), **SAMPLED)
    assert sorted(one.temperature for one in asked) == [0.0, 0.5, 1.0]
    assert (prediction.samples, prediction.answer) == (["x", "the y", "Y"], "the y")


def test_the_retries_of_two_samples_differ_as_well(answering, monkeypatch):
    cities = iter(["Oslo", "Rome", "Bonn"])

    def reply(asked: Asked) -> Any:
        if asked.temperature != RETRY_TEMPERATURE:
            return "nonsense"
        city = next(cities)
        return {"final_content": f"It is {city}.", "answer": city, "sure": True}

    answering(reply)
    dspy.settings.lm.cache = True
    # one after another, so that the cache could give the second the first one's
    monkeypatch.setattr("questree.programs.majority.run_parallel", lambda tasks: [task() for task in tasks])
    assert program("blendfilter", retriever=TableRetriever({}), **SAMPLED)(question=Q).samples == [
        "Oslo",
        "Rome",
        "Bonn",
    ]


@pytest.mark.parametrize(("samples", "top_p"), [(3, [0.5, 1.0]), (5, [0.25, 0.5, 0.75, 1.0])])
def test_in_the_paper_samples_differ_by_top_p_from_0_which_is_sent_as_temperature_0(ask, samples, top_p):
    asked = ask(**SAMPLED | {"samples": samples, "sampled_by": "top_p"}).asked
    assert {(one.temperature, one.top_p) for one in asked} == {(0.0, None), *((1.0, value) for value in top_p)}


def test_a_single_answer_is_drawn_at_the_lms_own_temperature(ask):
    prediction, asked, _ = ask(**SAMPLED | {"samples": 1})
    assert (prediction.samples, asked[-1].temperature) == (["a"], None)


NOTHING = {"facts": "", "missing": "", "recalled": "", "supported_answer": ""}


def judging(useful: str = "AC", **draft: str) -> Any:
    """Make an LM that writes this draft, and judges each passage by its title."""

    def reply(asked: Asked) -> dict[str, Any]:
        if asked.wants == "facts":
            return NOTHING | draft
        if asked.wants == "judgements":
            titles = enumerate(asked.titles, start=1)
            return {"judgements": [{"number": n, "says": "hm", "useful": title in useful} for n, title in titles]}
        return replying()(asked)

    return reply


def test_by_default_each_passage_is_judged_once_and_the_question_stands_first(ask):
    first = {Q: "AB", f"{Q} A is near. Where is B?": "BC", "Where is B?": "C", f"{Q} A is near. B is far.": "DA"}
    draft = {"facts": "A is near [1].", "missing": "Where is B?", "recalled": "B is far."}
    ran = ask(judging(**draft), first, preset="best")
    assert [query for query, _ in ran.queries] == list(first)
    assert ran.calls == ["facts(A+B)", "judgements(A+B+C+D)", "final_content(A+C)"]
    assert ids(ran.prediction.passages) == ["A", "C"]


@pytest.mark.parametrize("style", ["short", "list"])
def test_each_missing_fact_is_also_searched_for_by_itself_and_what_is_found_is_united(ask, style):
    draft = {"facts": "A is near [1].", "missing": "1. Where is Brno?\n2. Where is Cork?"}
    blended = f"{Q} A is near. Where is Brno? Where is Cork?"
    found = {Q: "AB", blended: "B", "Where is Brno?": "C", "Where is Cork?": "D"}
    ran = ask(judging("ACD", **draft), found, preset="best", style=style)
    assert [query for query, _ in ran.queries] == list(found)
    assert ran.calls == ["facts(A+B)", "judgements(A+B+C+D)", "final_content(A+C+D)"]
    assert [node.query for node in ran.prediction.tree.nodes if node.blend] == [Q, blended]


@pytest.mark.parametrize(
    ("draft", "queries"),
    [
        ({"missing": "Where is B?"}, [f"{Q} Where is B?", "Where is B?"]),
        (
            {"facts": "It is not told where B is. Perhaps B fishes [1].", "missing": "Where is B?"},
            [f"{Q} Where is B?", "Where is B?"],
        ),
        ({"facts": "A is near [1].", "recalled": "I do not recall where B is."}, [f"{Q} A is near."]),
        ({"recalled": "Nothing"}, []),
        ({"recalled": "B is probably far."}, []),
        ({"recalled": "B is far."}, [f"{Q} B is far."]),
    ],
)
def test_no_guess_and_nothing_that_is_not_told_is_searched_for(ask, draft, queries):
    ran = ask(judging(**draft), preset="best")
    assert [query for query, _ in ran.queries] == [Q, *queries]
    assert (ran.calls[0], "passage()" in ran.calls) == ("facts(A+B)", False)


@pytest.mark.parametrize(
    ("facts", "answer", "style", "samples", "ends"),
    [
        ("It is text of A [1].", "text of A", "short", 1, True),
        ("They are text of A [1] and text of B [2].", "text of A and text of B", "short", 1, True),
        ("It is text of A [1].", "yes", "yes-no", 1, True),
        ("It is text of A [1].", "text of A Where is B?", "short", 1, False),  # a fact is missing
        ("It is text of A [1].", "Ulm", "short", 1, False),  # no passage names it
        ("It is text of A.", "text of A", "short", 1, False),
        ("It is in Ulm [1].", "yes", "yes-no", 1, False),  # the mark is false
        ("It is text of A [1].", "", "short", 1, False),
        ("It is text of A [1].", "NOT ENOUGH INFO", "label", 1, False),
        ("It is text of A [1].", "text of A", "long", 1, False),
        ("It is text of A [1].", "text of A", "short", 3, False),
    ],
)
def test_the_first_answer_ends_the_question_where_passages_support_it(ask, facts, answer, style, samples, ends):
    answer, missing, _ = answer.partition(" Where is B?")
    reply = judging(facts=facts, supported_answer=answer, missing=missing)
    ran = ask(reply, preset="best", style=style, samples=samples)
    assert (ran.calls == ["facts(A+B)"]) == ends
    if ends:
        assert (ran.prediction.answer, ran.queries) == (answer, [(Q, 5)])
        assert ran.prediction.passages == ran.prediction.references != []


def test_a_passage_that_does_not_hold_what_is_told_is_not_cited(ask):
    def reply(asked: Asked) -> dict[str, Any]:
        if asked.wants == "final_content":
            return {"final_content": "It is in Prague [1], as text of C says [2].", "answer": "a", "sure": True}
        return judging()(asked)

    content = ask(reply, preset="best", queries=["original"]).prediction.final_content
    assert "Prague," in content, "nothing that was found says anything of Prague"


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
