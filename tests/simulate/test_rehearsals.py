"""Whole programs with the simulated LM: a good one answers, one that knows nothing does not, its traits cost."""

from collections.abc import Sequence
from typing import Any

import dspy
import pytest
from tiny_world import BLANK, QUESTIONS, TitleRetriever

from questree.data import MINI_CORPUS, Question, load_task
from questree.metrics import cover_exact_match, list_scores
from questree.programs import PROGRAMS, Program, build
from questree.retrieval import BM25Retriever, Retriever, read_corpus
from questree.simulate import Traits, simulated_lm

FAIR = BLANK.model_copy(
    update={"misjudges": 0, "overlooks": 0, "asks": 1, "completes": 0.0, "misjudges_shown": 0, "overlooks_shown": 0}
)


def asked(
    program: Program, questions: Sequence[Question], traits: Traits, known: Sequence[Question] = QUESTIONS
) -> tuple[float, list[dspy.Prediction]]:
    """The share of right answers, and the answers; none of them failed."""
    with dspy.context(lm=simulated_lm(known, traits, cache=False)):
        found = [program(question=q.question, answer_style=q.style) for q in questions]
    assert [prediction.failure for prediction in found] == [None] * len(questions)
    right = [cover_exact_match(one.answer, list(q.answers)) for one, q in zip(found, questions, strict=True)]
    return sum(right) / len(right), found


@pytest.mark.parametrize("name", [name for name, kind in PROGRAMS.items() if not kind.searches])
def test_without_retrieval_a_model_that_knows_nothing_answers_nothing(name: str) -> None:
    assert asked(build(name, {}, retriever=TitleRetriever()), QUESTIONS, FAIR)[0] == 0


BASELINES = ("oner-cot", "plan-and-solve-retrieval", "react", "dsp", "ircot", "multi-hop", "multi-hop-summaries")
GUESSING = ("tree-of-reviews", "chain-of-reviews", "blendfilter", "plan-graph")


@pytest.mark.parametrize(
    ("name", "completes"), [*((name, 0.0) for name in BASELINES), *((name, 1.0) for name in GUESSING)]
)
def test_with_retrieval_a_model_without_mistakes_answers_from_what_is_found(name: str, completes: float) -> None:
    traits = FAIR.model_copy(update={"completes": completes})
    _, found = asked(build(name, {}, retriever=TitleRetriever()), QUESTIONS, traits)
    assert [prediction.answer for prediction in found] == [question.answers[0] for question in QUESTIONS]
    assert name not in GUESSING or all(prediction.references for prediction in found)


@pytest.fixture(scope="module")
def mini() -> Retriever:
    return BM25Retriever.from_passages(read_corpus(MINI_CORPUS))


@pytest.mark.parametrize(
    ("name", "preset", "calls"),
    [
        ("tree-of-reviews", "best", (3, 9)),
        ("tree-of-reviews", "paper", (10, 25)),
        ("chain-of-reviews", "best", (1, 6)),
        ("blendfilter", "best", (1, 3)),
    ],
)
def test_on_the_mini_set_programs_score_and_cost_what_can_be_believed(
    mini: Retriever, name: str, preset: str, calls: tuple[int, int]
) -> None:
    splits: dict[str, Any] = load_task("mini").questions
    every = [question for split in splits.values() for question in split]
    questions = [question for question in splits["dev"] if question.style != "long"][:8]
    program = build(name, {"preset": preset}, retriever=mini)
    score, found = asked(program, questions, Traits(), every)
    assert 0.4 < score < 0.95
    assert calls[0] <= sum(one.spent.calls for one in found) / len(found) <= calls[1]
    assert asked(program, questions, Traits(overlooks=1.0, reads=0.0), every)[0] < score


@pytest.mark.parametrize("name", ["evidence-chain", "searchain", "tree-of-reviews", "blendfilter", "react"])
def test_lists_are_found_whole_and_what_no_passage_tells_is_declined(mini: Retriever, name: str) -> None:
    every = [question for split in load_task("mini-lists").questions.values() for question in split]
    _, found = asked(build(name, {"abstain": "unsupported"}, retriever=mini), every, FAIR, every)
    pairs = list(zip(every, found, strict=True))
    f1 = [list_scores(one.answers, question.items)["f1"] for question, one in pairs if question.answers]
    assert sum(f1) / len(f1) > 0.9
    assert [bool(one.answers) for _, one in pairs] == [bool(question.answers) for question in every]
