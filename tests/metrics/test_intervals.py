"""Bootstrap intervals."""

from __future__ import annotations

import math

import pytest

from questree.metrics import mean_interval, paired_interval


def test_the_interval_of_a_proportion_is_the_normal_one_for_many_questions() -> None:
    interval = mean_interval([1.0] * 400 + [0.0] * 600)
    half = 1.96 * math.sqrt(0.4 * 0.6 / 1000)
    assert interval.mean == pytest.approx(0.4)
    assert interval.low == pytest.approx(0.4 - half, abs=0.003)
    assert interval.high == pytest.approx(0.4 + half, abs=0.003)
    assert interval.n == 1000


def test_it_is_seeded_and_holds_its_mean() -> None:
    scores = [0.1, 0.9, 0.4, 0.3, 1.0, 0.0]
    assert mean_interval(scores, seed=3) == mean_interval(scores, seed=3)
    assert mean_interval(scores, seed=3) != mean_interval(scores, seed=4)
    interval = mean_interval(scores)
    assert min(scores) <= interval.low < interval.mean < interval.high <= max(scores)


def test_many_questions_are_drawn_in_blocks_of_all_resamples() -> None:
    wide, narrow = mean_interval([0.0, 1.0] * 50), mean_interval([0.0, 1.0] * 5_000)
    assert narrow.high - narrow.low == pytest.approx((wide.high - wide.low) / 10, rel=0.1)


def test_a_wider_level_is_wider() -> None:
    scores = [0.0, 1.0] * 20
    assert mean_interval(scores, level=0.99).low < mean_interval(scores, level=0.8).low


def test_a_paired_difference_leaves_out_what_the_questions_share() -> None:
    hard_and_easy = [0.0, 1.0] * 30
    slightly_better = [score + 0.1 for score in hard_and_easy]
    difference = paired_interval(hard_and_easy, slightly_better)
    assert difference.mean == pytest.approx(0.1)
    assert difference.low == pytest.approx(0.1)
    assert difference.high == pytest.approx(0.1)


def test_what_cannot_be_averaged_is_refused() -> None:
    with pytest.raises(ValueError, match="no scores"):
        mean_interval([])
    with pytest.raises(ValueError, match="level"):
        mean_interval([1.0], level=95)
    with pytest.raises(ValueError, match="2 and 1 scores"):
        paired_interval([1.0, 0.0], [1.0])


def test_it_prints_with_its_n() -> None:
    assert str(mean_interval([1.0, 1.0])) == "1.000 [1.000, 1.000] (n=2)"
