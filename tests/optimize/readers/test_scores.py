"""A reader's scores, worked out by hand."""

import pytest

from questree.optimize.readers import Reading, score_readings
from questree.optimize.readers.thresholds import relevance_interval


def test_spans_are_scored_on_own_passages_trusted_or_not_and_relevance_at_theta(examples):
    amber, cedar = examples[:2]
    readings = [
        Reading(2.0, True, amber, "the Basin"),  # right but for article and case
        Reading(-1.0, True, cedar, "delta sand"),  # half right, and not trusted
        Reading(3.0, False, amber, "basin"),  # trusted in a passage that does not answer
        Reading(-3.0, False, cedar, "delta"),
    ]
    scores = score_readings(readings, 0.0)
    assert (scores.em.mean, scores.em.n) == (0.5, 2)
    assert scores.span_f1.mean == pytest.approx((1 + 2 / 3) / 2)
    assert scores.relevance_f1.mean == pytest.approx(0.5)  # one right of two taken, of two that answer
    assert scores.worth == pytest.approx((scores.span_f1.mean + 0.5) / 2)
    assert scores.figures("dev_")["dev_em"] == 0.5
    assert scores.figures()["relevance_f1_high"] == scores.relevance_f1.high


def test_the_interval_of_f1_is_over_questions(examples):
    def readings(copies):
        found = []
        for number, example in enumerate(examples * copies):
            score = -1.0 if number % 4 == 0 else 1.0
            found += [Reading(score, True, example), Reading(-1.0, False, example)]
        return found

    few = relevance_interval(readings(1), 0.0)
    assert few.mean == pytest.approx(12 / 14)
    assert few.low < few.mean < few.high <= 1
    assert few.n == 8
    repeated = relevance_interval(readings(5), 0.0)  # the same eight questions, read five times
    assert (repeated.low, repeated.high, repeated.n) == (few.low, few.high, 8)
    assert relevance_interval([Reading(1.0, True), Reading(-1.0, False)] * 9, 0.0).low == 1
