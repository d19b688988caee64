"""Baselines that sample: samples differ, the majority answers, and what depends on how far they agree."""

from collections.abc import Callable

import dspy
import pytest
from answering import Asked
from dspy import lm15
from fakes import ListRetriever

from questree import program
from questree.common.errors import QuestreeError
from questree.lm.call import ATTEMPTS
from questree.lm.failure import counting_failures
from questree.programs import takes_retriever
from questree.programs.baselines.dsp import fuse
from questree.programs.majority import most_votes, sample, winner
from questree.retrieval import Passage

Q = "Which river?"
TOLD = {"final_content": "So.", "answer": "Vltava", "sure": "True"}


def thinking(*answers: str, thoughts: str = "Thought so.") -> Callable[[Asked], dict[str, str]]:
    """An LM whose chains of thought end in these answers, one after another, in whichever order they are asked."""
    left = iter(answers)
    return lambda asked: {"final_content": thoughts, "answer": next(left), "sure": "True"}


def test_each_sample_has_a_temperature_and_a_rollout_of_its_own(answering):
    answering(lambda asked: {})
    lms = sample(lambda: dspy.settings.lm, 3, temperature=0.7)
    assert [lm.kwargs["temperature"] for lm in lms] == [0.7] * 3
    assert len({lm.kwargs["rollout_id"] for lm in lms}) == 3
    (alone,) = sample(lambda: dspy.settings.lm, 1, temperature=0.7)
    assert "rollout_id" not in alone.kwargs


def test_samples_within_samples_differ_from_each_other(answering):
    answering(lambda asked: {})
    inner = sample(lambda: sample(lambda: dspy.settings.lm.kwargs["rollout_id"], 3, temperature=0.7), 3, 0.7)
    assert len({rollout for rollouts in inner for rollout in rollouts}) == 9


def test_an_lm_of_the_program_s_own_is_sampled_as_well(answering):
    engine = answering(lambda asked: {"final_content": "So.", "answer": "a", "sure": "True"})
    own = program("self-consistency", samples=3)
    own.set_lm(dspy.settings.lm.copy(cache=True))
    own(question="a question of this test and of its own LM")
    assert [asked.temperature for asked in engine.asked] == [0.7] * 3


def test_samples_really_call_the_lm_where_replies_are_cached(answering):
    engine = answering(lambda asked: {"final_content": "So.", "answer": "a", "sure": "True"})
    dspy.settings.lm.cache = True
    for _ in range(2):  # the second time, each sample is found in the cache
        program("self-consistency", samples=4)(question="a question of this test alone")
    assert [asked.temperature for asked in engine.asked] == [0.7] * 4


@pytest.mark.parametrize(
    ("answers", "style", "won", "votes"),
    [
        (["Elbe", "Vltava", "the vltava"], "short", "Vltava", 2),
        (["Elbe", "Vltava"], "short", "Elbe", 1),  # in a draw, the one that came first
        (["Vltava"], "short", "Vltava", 1),
        (["No", "Yes, he was.", "No", "Yes: so it is", "Yes - surely"], "yes-no", "Yes, he was.", 3),
        (["REFUTES", "SUPPORTED", "REFUTES", "SUPPORTS", "Supports the claim"], "label", "SUPPORTED", 3),
        (["No Country", "No End", "No End"], "short", "No End", 2),
        (["", "", "Bonn", "", "the bonn", "Prague"], "short", "Bonn", 2),  # what says nothing has no vote
        (["", ""], "short", "", 0),
        (["", "...", "Vltava", ""], "short", "Vltava", 1),
        (["Unknown.", "Bonn", "unknown"], "short", "Bonn", 1),
        (["A", "B", "a"], "short", "A", 2),  # an answer, not an article
    ],
)
def test_the_majority_compares_answers_in_their_normal_form(answers, style, won, votes):
    assert (answers[winner(answers, style)], most_votes(answers, style)) == (won, votes)


@pytest.mark.parametrize(("name", "settings"), [("self-consistency", {}), ("dsp", {}), ("recite", {"recitations": 5})])
def test_programs_that_sample_count_verdicts(run, name, settings):
    given = iter(["No", "Yes, he was.", "No", "Yes: so it is", "Yes - surely"])

    def reply(asked):
        if asked.wants == "passage":
            return {"passage": "A passage."}
        if asked.wants == "thoughts":
            return {"thoughts": "Nothing yet.", "query": "Where?"}
        return {"final_content": "So it is.", "answer": next(given), "sure": "True"}

    assert run(name, reply, style="yes-no", **settings).prediction.answer.startswith("Yes")


def test_self_consistency_samples_chains_of_thought(run):
    prediction, *_ = ran = run("self-consistency", thinking("Elbe", "Vltava", "Vltava"), samples=3)
    assert ran.calls == ["final_content()"] * 3
    assert prediction.answer == "Vltava"
    assert sorted(prediction.samples) == ["Elbe", "Vltava", "Vltava"]
    assert len(prediction.tree.children(None)) == 3
    assert [node.answer for node in prediction.tree.nodes_behind_answer()] == ["Vltava"]


def test_self_consistency_goes_around_any_program_with_its_tree(answering):
    def reply(asked):
        if asked.wants == "chain":
            return {"chain": [{"query": "Where?", "answer": "Prague"}, {"query": "Which?", "answer": "Vltava"}]}
        if asked.wants == "span":
            return {"span": "Prague", "confidence": 0.9}
        return {"final_content": "In Prague [1].", "answer": "Vltava", "sure": "True"}

    answering(reply)
    retriever = ListRetriever({"Where?": "Prague."})
    settings = {"preset": "paper", "max_rounds": 1}
    around = program("self-consistency", retriever=retriever, of="searchain", program=settings, samples=2)
    prediction = around(question=Q)
    assert around.program.settings.max_rounds == 1
    assert prediction.failure is None
    assert [(node.round, node.parent) for node in prediction.tree.nodes] == [(1, None), (1, 0), (1, None), (1, 2)], (
        "a sample is no round of interaction"
    )
    assert [passage.id for passage in prediction.references] == ["p0"]
    assert around.reader is around.program.reader


@pytest.mark.parametrize(("sure", "rests_on"), [("True", "passages"), ("False", "guess")])
def test_self_consistency_rests_on_what_its_sample_rests_on(answering, sure, rests_on):
    answering(lambda asked: {"final_content": "In Prague [1].", "answer": "Prague", "sure": sure})
    around = program("self-consistency", retriever=ListRetriever({Q: "Prague."}), of="oner-cot", samples=2)
    assert around(question=Q).rests_on == rests_on


def test_whether_a_retriever_is_wanted_depends_on_what_is_sampled():
    assert not takes_retriever("self-consistency", {})
    assert takes_retriever("self-consistency", {"of": "oner"})
    assert not takes_retriever("self-consistency", {"of": "searchain", "program": {"retrieval": False}})
    with pytest.raises(QuestreeError, match="no program 'cott'"):
        program("self-consistency", of="cott")


def test_dsp_tells_later_hops_and_the_answer_what_earlier_ones_found(run):
    thoughts = ["Nothing yet.", "A is told [1].", "B is told."]
    hops = [{"thoughts": said, "query": f"q{number}"} for number, said in enumerate(thoughts)]
    asked = run("dsp", *hops, TOLD, hops=3, queries=1, samples=1).asked
    assert ["A is told." in one.text for one in asked] == [False, False, True, True]
    assert "A is told. B is told." in asked[-1].text


LOST, QUERY, PASSAGE = ["no reply"] * ATTEMPTS, {"thoughts": "Missing.", "query": "x"}, {"passage": "p"}


@pytest.mark.parametrize(
    ("name", "replies", "settings", "votes"),
    [
        ("self-consistency", [*LOST, TOLD, TOLD], {"samples": 3}, 2),
        ("blendfilter", [*LOST, TOLD, TOLD], {"samples": 3, "queries": ["original"], "filter": "none"}, 2),
        ("verify-and-edit", [*LOST, TOLD, TOLD], {"samples": 3}, 2),
        ("dsp", [*LOST, QUERY, TOLD, *LOST], {"hops": 1, "queries": 2, "samples": 2}, 1),
        ("recite", [*LOST, PASSAGE, PASSAGE, *LOST, {"answer": "Vltava"}], {"recitations": 3}, 1),
    ],
)
def test_a_sample_that_cannot_be_read_has_no_vote(name, replies, settings, votes, run, monkeypatch):
    # one after another, so that a script's replies go to the samples in order
    monkeypatch.setattr("questree.programs.majority.run_parallel", lambda tasks: [task() for task in tasks])
    prediction, *_ = run(name, *replies, found={"x": "A"}, **settings)
    assert (prediction.answer, prediction.samples) == ("Vltava", ["Vltava"] * votes)
    assert prediction.spent.calls == len(replies)  # lost samples are paid for


@pytest.mark.parametrize(("reply", "cause"), [("no reply", "unparsable"), (lm15.AuthError("wrong key"), "auth")])
def test_a_failure_that_all_samples_have_fails_the_question(reply, cause, answering):
    answering(lambda asked: reply)
    with counting_failures():
        assert program("self-consistency", samples=2)(question=Q).failure.cause == cause


THOUGHTS = "Kafka was born in Vienna. The Danube flows there."


@pytest.fixture
def verify(run):
    """Ask Verify-and-Edit, with an LM that asks "Where?" of a sentence about Kafka and edits it, and samples these."""

    def verify(*answers, found=None, thoughts=THOUGHTS, query=None, edited=None):
        sampled = thinking(*answers, thoughts=thoughts)

        def reply(asked):
            born = "Kafka" in (asked.given("sentence") or "")
            if asked.wants == "query":
                return {"query": query or ("Where?" if born else "Which?")}
            if asked.wants == "edited":
                told = "Kafka was born in Prague." if born else asked.given("sentence")
                return {"edited": edited or told, "references": [1]}
            return {"answer": "Vltava"} if asked.wants == "answer" else sampled(asked)

        return run("verify-and-edit", reply, found=ListRetriever(found or {}), samples=3)

    return verify


def test_what_most_samples_agree_on_is_not_verified(verify):
    prediction, asked, queries = verify("Danube", "Danube", "Rhine")
    assert [one.wants for one in asked] == ["final_content"] * 3
    assert (prediction.answer, queries) == ("Danube", [])


DIFFER = ("Danube", "Rhine", "Elbe")


def test_what_samples_do_not_agree_on_is_verified_and_edited_sentence_by_sentence(verify):
    prediction, asked, _ = verify(*DIFFER, found={"Where?": "Kafka, of Prague."})
    assert [one.wants for one in asked[:3]] == ["final_content"] * 3
    assert sorted(one.wants for one in asked[3:-1]) == ["edited", "query", "query"]
    (edit,) = [one for one in asked if one.wants == "edited"]
    assert (edit.given("query"), edit.given("sentence")) == ("Where?", "Kafka was born in Vienna.")
    assert edit.given("passages") == ["[1] T0 | Kafka, of Prague."]
    assert asked[-1].given("thoughts") == ["Kafka was born in Prague.", "The Danube flows there."]
    assert prediction.answer == "Vltava"
    assert prediction.final_content == "Kafka was born in Prague. [1] The Danube flows there."
    assert [passage.id for passage in prediction.references] == ["p0"]
    assert [(node.query, node.source) for node in prediction.tree.nodes] == [
        (Q, "lm"),
        ("Where?", "corrected"),
        ("Which?", "lm"),
    ]


def test_a_sentence_without_an_edit_stays_and_without_a_query_is_searched_itself(verify):
    found = {"Kafka was born in Vienna.": "Kafka, of Prague."}
    prediction, _, queries = verify(*DIFFER, found=found, query="null", edited="null")
    assert prediction.answer == "Vltava"
    assert sorted(queries) == ["Kafka was born in Vienna.", "The Danube flows there."]
    assert [node.answer for node in prediction.tree.nodes[1:]] == [*found, "The Danube flows there."]


def test_a_name_with_initials_is_verified_in_its_sentence(verify):
    thoughts = "J. R. R. Tolkien met Dr. Smith. So the answer is Elbe."
    asked = verify(*DIFFER, thoughts=thoughts).asked
    assert {one.given("sentence") for one in asked if one.wants == "query"} == {
        "J. R. R. Tolkien met Dr. Smith.",
        "So the answer is Elbe.",
    }


def test_an_edited_sentence_cites_no_passage_that_does_not_hold_it(verify):
    prediction, *_ = verify(*DIFFER, found={"Where?": "A list of novels."})
    assert prediction.final_content == "Kafka was born in Prague. The Danube flows there."
    assert prediction.references == []


def test_dsp_searches_hop_by_hop_with_fused_queries_and_predicts_with_samples(run):
    queries = iter(["x", "y", "x", "z", "z", " "])
    answers = thinking("Elbe", "Vltava", "Vltava", thoughts="As D says [1].")

    def reply(asked):
        if asked.wants != "thoughts":
            return answers(asked)
        return {"thoughts": f"Missing after {asked.titles} [1].", "query": next(queries)}

    found = {Q: "BE", "x": "AB", "y": "CB", "z": "DF"}
    prediction, asked, searched = ran = run("dsp", reply, found=found, hops=2, queries=3, k=2, samples=3)
    assert ran.calls[:3] == ["thoughts()"] * 3
    assert ran.calls[3:6] == ["thoughts(B+A)"] * 3  # B is in all four rankings, A in two, C and E in one
    assert ran.calls[6:] == ["final_content(D+F)"] * 3  # what the last hop found, and nothing else
    assert {one.given("findings") for one in asked[6:]} == {"Missing after ('B', 'A')."}
    assert {one.temperature for one in asked} == {0.7}
    assert sorted(searched) == sorted([(Q, 6)] * 2 + [("x", 6)] * 2 + [("y", 6)] + [("z", 6)] * 2)
    assert (prediction.answer, [passage.id for passage in prediction.references]) == ("Vltava", ["D"])
    fates = {(node.query, node.passage.id): node.ended for node in prediction.tree.nodes if node.passage}
    assert fates["y", "C"] == fates[Q, "E"] == "filtered out"
    assert fates["z", "D"] == "kept"
    assert fates["y", "B"] == "filtered out", "what the last hop found takes its place"


def test_dsp_whose_only_query_is_the_question_retrieves_no_more_than_it_keeps(run):
    replies, settings = [{"thoughts": "Missing.", "query": ""}, TOLD], {"hops": 1, "queries": 1, "samples": 1, "k": 2}
    prediction, _, queries = run("dsp", *replies, found={Q: "ABC"}, **settings)
    assert queries == [(Q, 2)]
    assert [passage.id for passage in prediction.passages] == ["A", "B"]


def test_fusion_adds_up_the_probabilities_of_each_ranking():
    def ranked(**scores: float) -> list[Passage]:
        return [Passage(id=title, title=title, text=title, score=score) for title, score in scores.items()]

    sure, unsure = ranked(A=100.0, B=90.0), ranked(C=1.0, B=1.0)
    assert [passage.id for passage in fuse([sure, unsure, []])] == ["A", "B", "C"]
    assert fuse([[], []]) == []


def test_a_notebook_shows_no_default_as_a_chosen_setting():
    assert "program=" not in program("self-consistency")._repr_html_()
    assert "samples=3" in program("self-consistency", samples=3)._repr_html_()


def test_lists_vote_as_sets(run):
    replies = thinking("Ann Lee; Bo Ek", "Cy", "- Bo Ek\n- Ann Lee", "Ann Lee", '["Bo Ek", "Ann Lee", "ann lee"]')
    prediction = run("self-consistency", replies, samples=5, style="list").prediction
    assert prediction.answer == "; ".join(prediction.answers)
    assert sorted(prediction.answers) == ["Ann Lee", "Bo Ek"]
