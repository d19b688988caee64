"""The grounded score: right answers that stand in a cited passage."""

from __future__ import annotations

import pytest

from questree.evaluation.evaluation import Evaluation, is_grounded
from questree.evaluation.records import Record
from questree.retrieval import Passage

SWEDEN = Passage(id="1", title="IKEA", text="IKEA was founded in Sweden.")


def record(answer: str, rests_on: str | None = "passages", references=(SWEDEN,), score: float = 1.0) -> Record:
    return Record(
        id=answer,
        question="?",
        answer=answer,
        references=references,
        scores={"em": score},
        extras={"rests_on": rests_on},
    )


@pytest.mark.parametrize(
    ("one", "grounded"),
    [
        (record("Sweden"), True),
        (record("Sweden", "memory"), False),
        (record("Sweden", "guess"), False),
        (record("Sweden", references=()), False),
        (record("Norway"), False),  # no cited passage names it
        (record("yes"), True),
        (record("", None), False),
    ],
)
def test_what_is_grounded(one: Record, grounded: bool):
    assert is_grounded(one) is grounded


def test_the_score_counts_grounded_answers_alone():
    found = Evaluation("em", (record("Sweden"), record("yes", "memory"), record("no", score=0.0)))
    assert found.score.mean == pytest.approx(2 / 3)
    assert found.grounded.mean == pytest.approx(1 / 3)
    assert found.figures()["grounded"] == pytest.approx(1 / 3)
