"""Intervals and tests, against published values and by coverage."""

import math

import pytest

from questree.metrics import holm, mcnemar, mean_interval, paired_interval, share_interval


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
    wide, narrow = mean_interval([0.0, 0.9] * 50), mean_interval([0.0, 0.9] * 5_000)
    assert narrow.high - narrow.low == pytest.approx((wide.high - wide.low) / 10, rel=0.1)


def test_a_paired_difference_leaves_out_what_the_questions_share() -> None:
    hard_and_easy = [0.0, 1.0] * 30
    slightly_better = [score + 0.1 for score in hard_and_easy]
    difference = paired_interval(hard_and_easy, slightly_better)
    assert difference.mean == pytest.approx(0.1)
    assert difference.low == pytest.approx(0.1)
    assert difference.high == pytest.approx(0.1)


def pairs(both: int, second: int, first: int, neither: int) -> tuple[list[float], list[float]]:
    """Return scores of two programs, so that so many questions are right for both, for one of them, for neither."""
    return (
        [1.0] * both + [0.0] * second + [1.0] * first + [0.0] * neither,
        [1.0] * both + [1.0] * second + [0.0] * first + [0.0] * neither,
    )


def test_a_paired_difference_of_right_answers_is_newcombes() -> None:
    assert str(paired_interval(*pairs(36, 12, 2, 0))) == "0.200 [0.057, 0.340] (n=50)"
    assert str(paired_interval(*pairs(36, 2, 12, 0))) == "-0.200 [-0.340, -0.057] (n=50)"
    assert str(paired_interval(*pairs(5, 0, 0, 5))) == "0.000 [-0.167, 0.167] (n=10)"  # a bootstrap's has no width
    assert paired_interval(*pairs(0, 10, 0, 0)).high == pytest.approx(1.0)


def test_what_cannot_be_averaged_is_refused() -> None:
    with pytest.raises(ValueError, match="no scores"):
        mean_interval([])
    with pytest.raises(ValueError, match="2 and 1 scores"):
        paired_interval([1.0, 0.0], [1.0])


def test_it_prints_with_its_n_and_in_a_form_without() -> None:
    assert str(mean_interval([1.0, 1.0])) == f"{mean_interval([1.0, 1.0])}" == "1.000 [0.342, 1.000] (n=2)"
    assert f"{mean_interval([0.5, 0.5]):+.2f}" == "+0.50 [+0.50, +0.50]"


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [  # Newcombe, Statistics in Medicine 1998, table I: the score method without continuity correction
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_a_share_has_wilsons_interval(right: int, n: int, low: float, high: float) -> None:
    interval = mean_interval([1.0] * right + [0.0] * (n - right))
    assert interval == share_interval(right, n)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@pytest.mark.parametrize(("n", "p"), [(10, 0.05), (30, 0.05), (30, 0.5), (10, 0.3)])
def test_it_holds_the_true_share_about_as_often_as_it_says(n: int, p: float) -> None:
    chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    held = [share_interval(k, n).low <= p <= share_interval(k, n).high for k in range(n + 1)]
    assert sum(chance for chance, holds in zip(chances, held, strict=True) if holds) > 0.9


def test_mcnemars_mid_p_is_the_published_one() -> None:
    """Fagerland, Lydersen and Laake, BMC Medical Research Methodology 2013, table 3: 1 against 7, mid-p 0.039."""
    assert mcnemar(*pairs(1, 7, 1, 0)) == pytest.approx(0.0391, abs=5e-5)
    assert mcnemar(*pairs(5, 0, 1, 0)) == 0.5
    assert mcnemar(*pairs(5, 3, 3, 0)) == 1.0
    assert mcnemar(*pairs(5, 0, 0, 0)) == 1.0
    assert mcnemar(*pairs(0, 2000, 1500, 0)) < 1e-9
    assert mcnemar([0.5], [1.0]) is None
    with pytest.raises(ValueError, match="2 and 1 scores"):
        mcnemar([1.0, 0.0], [1.0])


def test_holm_adjusts_for_the_number_of_comparisons() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}
    )
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}
