"""SearChain as the paper has it, call by call on hand-made cases (Xu et al., WWW 2024, algorithm 1)."""

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


KNOWN = [step(AUTHOR, "Franz Kafka"), step(BIRTH, "Prague"), step(RIVER, "Vltava")]
TOLD = {
    "final_content": "Kafka wrote it [1]. He was born in Prague [2]. It lies on the Vltava [3].",
    "answer": "Vltava",
}


def searchain(spans=SURE, passages=PASSAGES, **settings) -> SearChain:
    return SearChain(ListRetriever(passages), ListReader(spans), SearChainSettings(preset="paper", **settings))


def test_a_chain_that_agrees_with_its_passages_takes_two_calls(scripted):
    engine = scripted({"chain": KNOWN}, TOLD)
    prediction = searchain()(question=QUESTION)
    assert len(engine.prompts) == 2
    assert prediction.answer == "Vltava"
    assert prediction.failure is None
    assert [node.source for node in prediction.tree.nodes] == ["lm", "lm", "lm"]
    assert [passage.text for passage in prediction.references] == list(PASSAGES.values())
    assert prediction.spent.calls == 2


def test_an_unsolved_node_is_completed_however_unsure_the_reader_is(scripted):
    engine = scripted({"chain": [KNOWN[0], step(BIRTH, None)]}, {"new_answer": "Prague", "new_steps": [KNOWN[2]]}, TOLD)
    prediction = searchain({**SURE, BIRTH: ("Prague", -9.0)})(question=QUESTION)
    assert "Franz Kafka was born in Prague." in engine.prompts[1]
    path = prediction.tree.last_path()
    assert [(node.query, node.answer, node.source) for node in path] == [
        (AUTHOR, "Franz Kafka", "lm"),
        (BIRTH, "Prague", "completed"),
        (RIVER, "Vltava", "lm"),
    ]
    assert path[1].replaces == 1
    assert path[1].span.text == "Prague"
    assert [node.round for node in path] == [1, 2, 2]


def test_a_sure_reader_makes_the_lm_correct_its_answer(scripted):
    wrong = step(BIRTH, "Vienna")
    engine = scripted(
        {"chain": [KNOWN[0], wrong, step("Which river flows through Vienna?", "Danube")]},
        {"new_answer": "Prague", "new_steps": [KNOWN[2]]},
        TOLD,
    )
    prediction = searchain()(question=QUESTION)
    assert "Vienna" in engine.prompts[1]
    assert "Which river flows through Vienna?" in engine.prompts[1], "the LM sees what it had planned"
    assert [node.source for node in prediction.tree.last_path()] == ["lm", "corrected", "lm"]
    assert "Danube" not in engine.prompts[2]  # only the path that ends in the last leaf is traced
    assert "Which river flows through Vienna?" in [node.query for node in prediction.tree.nodes]


def test_an_answer_that_the_lm_keeps_after_feedback_counts_as_corrected(scripted):
    scripted(
        {"chain": [step(BIRTH, "Vienna")]},
        {"new_answer": "Vienna", "new_steps": []},
        {"final_content": "Vienna [1].", "answer": "Vienna"},
    )
    prediction = searchain()(question=QUESTION)
    assert [(node.answer, node.source) for node in prediction.tree.last_path()] == [("Vienna", "corrected")]


@pytest.mark.parametrize(
    ("span", "settings"),
    [
        (("Prague", 1.5), {}),  # not above the reader's own threshold
        (("Prague", 3.0), {"theta": 3.5}),
        (("", 9.0), {}),  # an empty span is no evidence
        (("the", 9.0), {}),  # nor one that is empty once normalised
        (("Prague", 9.0), {"verification": False}),
    ],
)
def test_the_lm_is_not_overruled(scripted, span, settings):
    engine = scripted({"chain": [step(BIRTH, "Vienna")]}, {"final_content": "", "answer": "Vienna"})
    searchain({BIRTH: span}, **settings)(question=QUESTION)
    assert len(engine.prompts) == 2


@pytest.mark.parametrize(("answer", "span"), [("In Prague, Bohemia", "Prague"), ("Earth", "art")])
def test_a_span_within_a_longer_answer_agrees_and_the_answer_is_kept(scripted, answer, span):
    engine = scripted({"chain": [step(BIRTH, answer)]}, {"final_content": "", "answer": "x"})
    prediction = searchain({BIRTH: (span, 3.0)})(question=QUESTION)
    assert len(engine.prompts) == 2
    assert [(node.answer, node.source) for node in prediction.tree.nodes] == [(answer, "lm")]


def test_a_query_with_a_number_sign_is_looked_up_as_it_is_written(scripted):
    hit = "Which song was #1 in 1985?"
    scripted({"chain": [KNOWN[0], step(hit, None)]}, {"new_answer": "Shout", "new_steps": [step("And #2?", "x")]}, TOLD)
    program = searchain(passages={**PASSAGES, hit: "Shout.", "And #2?": "x"})
    program(question=QUESTION)
    assert program.retriever.queries == [AUTHOR, hit, "And #2?"]


@pytest.mark.parametrize(("alpha", "calls"), [(0.9, 3), (0.1, 2)])
def test_a_long_answer_is_compared_with_the_passage_by_rouge(scripted, alpha, calls):
    scripted_replies = [
        {"chain": [step(BIRTH, "Kafka, an author, was born in Prague in Bohemia")]},
        {"new_answer": "He was born in Prague.", "new_steps": []},
        {"final_content": "", "answer": "x"},
    ]
    engine = scripted(*(scripted_replies if calls == 3 else [scripted_replies[0], scripted_replies[2]]))
    searchain(alpha=alpha)(question=QUESTION, answer_style="long")
    assert len(engine.prompts) == calls


@pytest.mark.parametrize(("agreement", "calls"), [("words", 2), ("string", 3)])
def test_a_short_step_of_a_long_answer_is_compared_by_its_words_and_in_the_paper_by_rouge(scripted, agreement, calls):
    chain = {"chain": [step(BIRTH, "Prague")]}
    engine = scripted(*[chain, {"new_answer": "Prague", "new_steps": []}, TOLD][: calls - 1], TOLD)
    searchain(agreement=agreement)(question=QUESTION, answer_style="long")
    assert len(engine.prompts) == calls


@pytest.mark.parametrize(("alpha", "cited"), [(0.2, True), (0.9, False)])
def test_a_long_answer_after_help_is_cited_where_it_agrees_with_the_passage(scripted, alpha, cited):
    told = "The author was born in Prague in 1883"
    scripted(
        {"chain": [step(BIRTH, None)]},
        {"new_answer": told, "new_steps": []},
        {"final_content": f"{told} [1].", "answer": told},
    )
    prediction = searchain(alpha=alpha)(question=QUESTION, answer_style="long")
    assert prediction.tree.last_path()[-1].support == (PASSAGES[BIRTH] if cited else None)
    assert len(prediction.references) == cited


def test_without_completion_the_unsolved_stays_unsolved(scripted):
    scripted({"chain": [step(BIRTH, None)]}, {"final_content": "Unknown.", "answer": ""})
    prediction = searchain(completion=False)(question=QUESTION)
    assert [node.source for node in prediction.tree.nodes] == ["unsolved"]


def test_without_retrieval_the_first_chain_answers_alone(scripted):
    scripted({"answered_plan": [step(BIRTH, None)]}, {"final_content": "Vltava [1].", "answer": "Vltava"})
    prediction = SearChain(settings=SearChainSettings(retrieval=False))(question=QUESTION)
    assert prediction.references == []
    assert prediction.final_content == "Vltava."


def test_rounds_are_bounded(scripted):
    never = {"new_answer": "Vienna", "new_steps": [step(RIVER, None)]}
    engine = scripted({"chain": [step(RIVER, None)]}, never, never, {"final_content": "", "answer": ""})
    prediction = searchain(max_rounds=3)(question=QUESTION)
    assert len(engine.prompts) == 4
    assert max(node.round for node in prediction.tree.nodes) == 3


def test_a_repeated_query_shares_the_passage_it_found_before(scripted):
    scripted({"chain": [KNOWN[1], step("where was franz kafka BORN", "Prague")]}, TOLD)
    program = searchain()
    prediction = program(question=QUESTION)
    assert program.retriever.queries == [BIRTH]
    assert prediction.tree.nodes[1].repeats == 0
    assert prediction.tree.nodes[1].passage == prediction.tree.nodes[0].passage


def test_repeats_can_be_processed_again(scripted):
    scripted({"chain": [KNOWN[1], KNOWN[1]]}, TOLD)
    program = searchain(skip_repeats=False)
    program(question=QUESTION)
    assert program.retriever.queries == [BIRTH, BIRTH]


def test_an_unsolved_query_is_never_taken_for_a_repetition(scripted):
    engine = scripted({"chain": [KNOWN[1], step(BIRTH, None)]}, {"new_answer": "Prague", "new_steps": []}, TOLD)
    searchain()(question=QUESTION)
    assert len(engine.prompts) == 3


def test_without_a_reader_the_lm_reads(scripted):
    engine = scripted({"chain": [KNOWN[1]]}, {"span": "Prague", "confidence": 0.95}, TOLD)
    prediction = SearChain(ListRetriever(PASSAGES), settings=PAPER)(question=QUESTION)
    assert "Franz Kafka was born in Prague." in engine.prompts[1]
    assert prediction.tree.nodes[0].span.text == "Prague"
    assert prediction.tree.nodes[0].span.score > SearChain(ListRetriever({}), settings=PAPER).reader.threshold


@pytest.mark.parametrize("confidence", ["nan", -0.5])
def test_a_confidence_that_is_no_probability_overrules_nothing(confidence, scripted):
    scripted({"chain": [step(BIRTH, "Vienna")]}, {"span": "Prague", "confidence": confidence}, TOLD)
    (node,) = SearChain(ListRetriever(PASSAGES), settings=PAPER)(question=QUESTION).tree.nodes
    assert (node.answer, node.stance, node.span.text) == ("Vienna", "silent", "Prague")
    assert node.span.score == pytest.approx(-6.9, abs=0.1)


def test_a_span_that_the_lm_reader_made_up_is_no_span(scripted):
    scripted({"chain": [step(BIRTH, "Prague")]}, {"span": "Vienna", "confidence": 1.0}, TOLD)
    prediction = SearChain(ListRetriever(PASSAGES), settings=PAPER)(question=QUESTION)
    assert prediction.tree.nodes[0].span.text == ""
    assert prediction.tree.nodes[0].source == "lm"


@pytest.mark.parametrize("cause", ["retrieval", "reader"])
def test_a_failing_retriever_or_reader_fails_the_question_and_keeps_its_tree(scripted, monkeypatch, cause):
    def broken(*given, **how):
        raise RuntimeError("index is gone")

    monkeypatch.setattr(ListRetriever if cause == "retrieval" else ListReader, "__call__", broken)
    scripted({"chain": KNOWN})
    prediction = SearChain(ListRetriever(PASSAGES), ListReader({}), PAPER)(question=QUESTION)
    assert (prediction.failure.cause, prediction.answer, len(prediction.tree.nodes)) == (cause, "", 3)
    assert "index is gone" in prediction.failure.message


def test_watchers_see_the_tree_grow(scripted):
    scripted({"chain": KNOWN}, TOLD)
    sizes: list[int] = []
    searchain()(question=QUESTION, watch=lambda tree: sizes.append(len(tree.nodes)))
    assert sizes[:3] == [1, 2, 3]
