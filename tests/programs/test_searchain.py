"""SearChain as the paper has it, call by call on hand-made cases (Xu et al., WWW 2024, algorithm 1).

Which queries are looked up, what overrules an answer, repetitions and the number of rounds: see test_searchain_client.
"""

import pytest
from fakes import ListReader, ListRetriever

from questree.programs import SearChain, SearChainSettings

PAPER = SearChainSettings(preset="paper")
QUESTION = "Which river flows through the birthplace of the author of The Metamorphosis?"
AUTHOR, BIRTH, RIVER = (
    "Who wrote The Metamorphosis?",
    "Where was Franz Kafka born?",
    "Which river flows through Prague?",
)
PASSAGES = {
    AUTHOR: "The Metamorphosis is a novella by Franz Kafka.",
    BIRTH: "Franz Kafka was born in Prague.",
    RIVER: "Prague lies on the Vltava.",
}
SURE = {AUTHOR: ("Franz Kafka", 3.0), BIRTH: ("Prague", 3.0), RIVER: ("Vltava", 3.0)}


def step(query: str, answer: str | None) -> dict[str, str | None]:
    return {"query": query, "answer": answer}


def goes_on(answer: str, *steps: dict[str, str | None]) -> dict[str, object]:
    return {"new_answer": answer, "new_steps": list(steps)}


KNOWN = [step(AUTHOR, "Franz Kafka"), step(BIRTH, "Prague"), step(RIVER, "Vltava")]
WRONG, UNKNOWN = step(BIRTH, "Vienna"), step(BIRTH, None)
TOLD = {
    "final_content": "Kafka wrote it [1]. He was born in Prague [2]. It lies on the Vltava [3].",
    "answer": "Vltava",
}


@pytest.fixture
def ask(run):
    """Ask the paper's SearChain, with an LM that plans this chain, goes on so, and tells the path.

    Without ``spans`` the LM reads.
    """

    def ask(chain, *replies, spans=SURE, found=PASSAGES, told=TOLD, **how):
        reader = None if spans is None else ListReader({**SURE, **spans})
        how |= {"found": ListRetriever(found), "reader": reader, "question": QUESTION, "preset": "paper"}
        return run("searchain", {"chain": chain}, *replies, told, **how)

    return ask


def test_a_chain_that_agrees_with_its_passages_takes_two_calls(ask):
    prediction, *_ = ask(KNOWN)
    assert prediction.answer == "Vltava"
    assert [node.source for node in prediction.tree.nodes] == ["lm", "lm", "lm"]
    assert [passage.text for passage in prediction.references] == list(PASSAGES.values())
    assert prediction.spent.calls == 2


def test_an_unsolved_node_is_completed_however_unsure_the_reader_is(ask):
    prediction, asked, _ = ask([KNOWN[0], UNKNOWN], goes_on("Prague", KNOWN[2]), spans={BIRTH: ("Prague", -9.0)})
    assert "Franz Kafka was born in Prague." in asked[1].text
    path = prediction.tree.last_path()
    assert [(node.query, node.answer, node.source, node.round) for node in path] == [
        (AUTHOR, "Franz Kafka", "lm", 1),
        (BIRTH, "Prague", "completed", 2),
        (RIVER, "Vltava", "lm", 2),
    ]
    assert (path[1].replaces, path[1].span.text) == (1, "Prague")


def test_a_sure_reader_makes_the_lm_correct_its_answer(ask):
    planned = "Which river flows through Vienna?"
    prediction, asked, _ = ask([KNOWN[0], WRONG, step(planned, "Danube")], goes_on("Prague", KNOWN[2]))
    assert "Vienna" in asked[1].text
    assert planned in asked[1].text, "the LM sees what it had planned"
    assert [node.source for node in prediction.tree.last_path()] == ["lm", "corrected", "lm"]
    assert "Danube" not in asked[2].text  # only the path that ends in the last leaf is traced
    assert planned in [node.query for node in prediction.tree.nodes]


@pytest.mark.parametrize(
    ("answer", "span", "settings"),
    [
        ("Vienna", ("Prague", 1.5), {}),  # not above the reader's own threshold
        ("Vienna", ("Prague", 9.0), {"verification": False}),
    ],
)
def test_the_lm_is_not_overruled(ask, answer, span, settings):
    prediction, *_ = ask([step(BIRTH, answer)], spans={BIRTH: span}, **settings)
    assert [(node.answer, node.source) for node in prediction.tree.nodes] == [(answer, "lm")]


LONG = "Kafka, an author, was born in Prague in Bohemia"


@pytest.mark.parametrize(
    ("answer", "settings", "overruled"),
    [
        (LONG, {"alpha": 0.9}, True),
        (LONG, {"alpha": 0.1}, False),
        ("Prague", {"agreement": "words"}, False),  # a short step by its words, and in the paper by ROUGE
        ("Prague", {"agreement": "string"}, True),
    ],
)
def test_a_long_answer_is_compared_with_the_passage_by_rouge(ask, answer, settings, overruled):
    ask([step(BIRTH, answer)], *[goes_on("He was born in Prague.")] * overruled, style="long", **settings)


@pytest.mark.parametrize(("alpha", "cited"), [(0.2, True), (0.9, False)])
def test_a_long_answer_after_help_is_cited_where_it_agrees_with_the_passage(ask, alpha, cited):
    said = "The author was born in Prague in 1883"
    told = {"final_content": f"{said} [1].", "answer": said}
    prediction, *_ = ask([UNKNOWN], goes_on(said), told=told, style="long", alpha=alpha)
    assert prediction.tree.last_path()[-1].support == (PASSAGES[BIRTH] if cited else None)
    assert len(prediction.references) == cited


def test_without_completion_the_unsolved_stays_unsolved(ask):
    prediction, *_ = ask([UNKNOWN], completion=False)
    assert [node.source for node in prediction.tree.nodes] == ["unsolved"]


def test_without_retrieval_the_first_chain_answers_alone(run):
    replies = {"answered_plan": [UNKNOWN]}, {"final_content": "Vltava [1].", "answer": "Vltava"}
    prediction = run("searchain", *replies, retrieval=False).prediction
    assert (prediction.references, prediction.final_content) == ([], "Vltava.")


def test_a_repeated_query_shares_the_passage_it_found_before(ask):
    prediction, _, queries = ask([KNOWN[1], step("where was franz kafka BORN", "Prague")])
    assert queries == [BIRTH]
    first, second = prediction.tree.nodes
    assert (second.repeats, second.passage) == (0, first.passage)


def test_repeats_can_be_processed_again(ask):
    *_, queries = ask([KNOWN[1], KNOWN[1]], skip_repeats=False)
    assert queries == [BIRTH, BIRTH]


@pytest.mark.parametrize(
    ("answer", "reply", "span", "score"),
    [
        ("Prague", {"span": "Prague", "confidence": 0.95}, "Prague", 2.9),
        ("Vienna", {"span": "Prague", "confidence": "nan"}, "Prague", -6.9),  # what is no probability overrules nothing
        ("Vienna", {"span": "Prague", "confidence": -0.5}, "Prague", -6.9),
        ("Prague", {"span": "Vienna", "confidence": 1.0}, "", -6.9),  # made up
    ],
)
def test_without_a_reader_the_lm_reads(ask, answer, reply, span, score):
    prediction, asked, _ = ask([step(BIRTH, answer)], reply, spans=None)
    assert "Franz Kafka was born in Prague." in asked[1].text
    (node,) = prediction.tree.nodes
    assert (node.answer, node.source, node.span.text) == (answer, "lm", span)
    assert node.span.score == pytest.approx(score, abs=0.1)
    assert node.stance == ("supports" if score > SearChain(settings=PAPER).reader.threshold else "silent")


@pytest.mark.parametrize("cause", ["retrieval", "reader"])
def test_a_failing_retriever_or_reader_fails_the_question_and_keeps_its_tree(scripted, monkeypatch, cause):
    def broken(*given, **how):
        raise RuntimeError("index is gone")

    monkeypatch.setattr(ListRetriever if cause == "retrieval" else ListReader, "__call__", broken)
    scripted({"chain": KNOWN})
    prediction = SearChain(ListRetriever(PASSAGES), ListReader({}), PAPER)(question=QUESTION)
    assert (prediction.failure.cause, prediction.answer, len(prediction.tree.nodes)) == (cause, "", 3)
    assert "index is gone" in prediction.failure.message


def test_watchers_see_the_tree_grow(ask):
    sizes: list[int] = []
    ask(KNOWN, watch=lambda tree: sizes.append(len(tree.nodes)))
    assert sizes[:3] == [1, 2, 3]
