"""How sure a figure is: intervals around a mean, and tests of the difference between two programs.

A share of right answers has a Wilson interval, and the difference of two such shares Newcombe's; any other mean a
seeded percentile bootstrap over the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from statistics import NormalDist

_LEVEL, _RESAMPLES = 0.95, 10_000
_DRAWS_AT_ONCE = 4_000_000  # numbers, 32 MB: bounds memory whatever the number of questions


@dataclass(frozen=True)
class Interval:
    """A mean and the interval around it, on the scale of the scores.

    Attributes:
        mean: of the scores (or of the differences).
        low: lower end.
        high: upper end.
        n: the number of questions.
        level: how often such an interval holds the true mean.
    """

    mean: float
    low: float
    high: float
    n: int
    level: float = _LEVEL

    def __str__(self) -> str:
        return f"{self:.3f} (n={self.n})"

    def __format__(self, form: str) -> str:
        """Return the mean and the ends in brackets, each in this form (``.3f``, ``+.3f``); without one, the text."""
        return f"{self.mean:{form}} [{self.low:{form}}, {self.high:{form}}]" if form else str(self)


def mean_interval(scores: Sequence[float], *, seed: int = 0) -> Interval:
    """Return the mean of the scores, one for each question, with its interval.

    If every score is 0 or 1, it is Wilson's (`share_interval`): the bootstrap is too narrow for few questions, and has
    no width if all are right. Else it is the percentile bootstrap (Efron, 1979).

    Raises:
        ValueError: if there are no scores.
    """
    if len(scores) and set(scores) <= {0, 1}:
        return share_interval(round(sum(scores)), len(scores))
    return bootstrap_interval(scores, seed=seed)


def share_interval(right: int, n: int) -> Interval:
    """Return the share of right ones among n with its score interval (Wilson, 1927).

    Raises:
        ValueError: if n is below 1.
    """
    _check(n)
    z = NormalDist().inv_cdf((1 + _LEVEL) / 2)
    share, scale = right / n, 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    reach = z / scale * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if right == 0 else max(0.0, middle - reach)
    return Interval(share, low, 1.0 if right == n else min(1.0, middle + reach), n)


def _check(n: int) -> None:
    if n < 1:
        raise ValueError("no scores: a mean and its interval need at least one")


def bootstrap_interval(scores: Sequence[float], *, seed: int = 0) -> Interval:
    """Return the mean of any numbers, counts for example, with its percentile bootstrap (Efron, 1979).

    Raises:
        ValueError: if there are no numbers.
    """
    import numpy as np

    values = np.asarray(scores, dtype=float)
    _check(values.size)
    rng = np.random.default_rng(seed)
    block = max(1, _DRAWS_AT_ONCE // values.size)
    means = np.concatenate(
        [
            values[rng.integers(values.size, size=(min(block, _RESAMPLES - done), values.size))].mean(axis=1)
            for done in range(0, _RESAMPLES, block)
        ]
    )
    low, high = np.quantile(means, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Interval(float(values.mean()), float(low), float(high), int(values.size))


def paired_interval(first: Sequence[float], second: Sequence[float], *, seed: int = 0) -> Interval:
    """Return the mean of ``second - first`` over the questions, with its interval; above 0 the second is better.

    Both hold the same questions in the same order, so that an easy or hard question, which both share, does not widen
    the interval as it widens two separate ones. If every score is 0 or 1, it is Newcombe's, else the bootstrap of the
    differences: of a few right and wrong ones that is too narrow, and has no width where both are right equally often.

    Raises:
        ValueError: if the two differ in length, or are empty.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} scores: a pair needs the same questions")
    if len(first) and {*first, *second} <= {0, 1}:
        return _newcombe(first, second)
    differences = [b - a for a, b in zip(first, second, strict=True)]
    return bootstrap_interval(differences, seed=seed)


def _newcombe(first: Sequence[float], second: Sequence[float]) -> Interval:
    """Return the difference of two paired shares with its score interval (Newcombe, Stat. Med. 1998, method 10)."""
    n, one, other = len(first), round(sum(first)), round(sum(second))
    both = sum(bool(a and b) for a, b in zip(first, second, strict=True))
    spread, together = one * (n - one) * other * (n - other), both * n - one * other
    correlation = (max(together - n / 2, 0) if together > 0 else together) / sqrt(spread) if spread else 0.0

    def reach(down: float, up: float) -> float:
        return sqrt(max(0.0, down * down - 2 * correlation * down * up + up * up))

    was, now = share_interval(one, n), share_interval(other, n)
    mean = (other - one) / n
    low = mean - reach(now.mean - now.low, was.high - was.mean)
    high = mean + reach(was.mean - was.low, now.high - now.mean)
    return Interval(mean, low, high, n)


def mcnemar(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the p-value of two programs being right equally often: McNemar's test, mid-p (Fagerland et al., 2013).

    Both hold the same questions in the same order. Only the questions count that one got right and the other did not.

    Returns:
        None if a score is neither 0 nor 1.

    Raises:
        ValueError: if the two differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} scores: a pair needs the same questions")
    if not {*first, *second} <= {0, 1}:
        return None
    gained = sum(b > a for a, b in zip(first, second, strict=True))
    lost = sum(b < a for a, b in zip(first, second, strict=True))
    n, fewer = gained + lost, min(gained, lost)
    # the binomial coefficients up to that of `fewer`, each from the one before: with `comb` 5,000 take seven seconds
    ways = list(accumulate(range(fewer), lambda ways, k: ways * (n - k) // (k + 1), initial=1))
    return 1.0 if gained == lost else (2 * sum(ways) - ways[-1]) / 2**n


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return the p-values of several comparisons, adjusted for their number (Holm, 1979), by the same names."""
    adjusted, largest = dict[str, float](), 0.0
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}
