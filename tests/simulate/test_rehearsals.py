"""Whole programs with the simulated LM: a good one answers, its traits cost what they name."""

from typing import Any

import dspy
import pytest
from tiny_world import BLANK, QUESTIONS, TitleRetriever

from questree.data import MINI_CORPUS, load_task
from questree.metrics import cover_exact_match
from questree.programs import BlendFilter, ChainOfReviews, TreeOfReviews
from questree.programs.baselines.plan_graph import PlanGraph
from questree.retrieval import BM25Retriever, Retriever, read_corpus
from questree.simulate import Traits, simulated_lm

PROGRAMS = [TreeOfReviews, ChainOfReviews, BlendFilter, PlanGraph]
FAIR = BLANK.model_copy(
    update={"misjudges": 0, "overlooks": 0, "asks": 1, "completes": 1.0, "misjudges_shown": 0, "overlooks_shown": 0}
)


@pytest.fixture(scope="module")
def mini() -> Retriever:
    return BM25Retriever.from_passages(read_corpus(MINI_CORPUS))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_model_without_mistakes_answers_from_what_is_found(program: Any) -> None:
    with dspy.context(lm=simulated_lm(QUESTIONS, FAIR, cache=False)):
        found = [program(TitleRetriever())(question=q.question, answer_style=q.style) for q in QUESTIONS]
    assert [prediction.failure for prediction in found] == [None] * 4
    assert [prediction.answer for prediction in found] == [q.answers[0] for q in QUESTIONS]
    assert all(prediction.references for prediction in found)


@pytest.mark.parametrize(
    ("program", "preset", "calls"),
    [
        (TreeOfReviews, "best", (3, 9)),
        (TreeOfReviews, "paper", (10, 25)),
        (ChainOfReviews, "best", (1, 6)),
        (BlendFilter, "best", (4, 5)),
    ],
)
def test_on_the_mini_set_programs_score_and_cost_what_can_be_believed(
    mini: Retriever, program: Any, preset: str, calls: tuple[int, int]
) -> None:
    task = load_task("mini")
    every = [question for split in task.questions.values() for question in split]
    questions = [question for question in task.questions["dev"] if question.style != "long"][:8]

    settings = program.Settings(preset=preset)

    def run(traits: Traits) -> tuple[float, float]:
        with dspy.context(lm=simulated_lm(every, traits, cache=False)):
            found = [program(mini, settings)(question=q.question, answer_style=q.style) for q in questions]
        right = [cover_exact_match(one.answer, list(q.answers)) for one, q in zip(found, questions, strict=True)]
        return sum(right) / len(right), sum(one.spent.calls for one in found) / len(found)

    score, cost = run(Traits())
    assert 0.4 < score < 0.95
    assert calls[0] <= cost <= calls[1]
    blind, _ = run(Traits(overlooks=1.0, reads=0.0))
    assert blind < score
