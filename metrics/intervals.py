"""Intervals around a mean, by a seeded percentile bootstrap over the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_DRAWS_AT_ONCE = 4_000_000  # numbers, 32 MB: bounds memory whatever the number of questions


@dataclass(frozen=True)
class Interval:
    """A mean and the interval around it, on the scale of the scores.

    Attributes:
        mean: of the scores (or of the differences).
        low: lower end.
        high: upper end.
        n: the number of questions.
        level: share of resampled means that lie between the ends.
    """

    mean: float
    low: float
    high: float
    n: int
    level: float = 0.95

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] (n={self.n})"


def mean_interval(scores: Sequence[float], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval:
    """Return the mean of the scores, one for each question, with its percentile bootstrap interval (Efron, 1979).

    The interval is somewhat too narrow for few questions, and has no width if all scores are equal: ten right
    answers of ten give [1, 1], which says nothing about an eleventh.

    Raises:
        ValueError: if there are no scores, or level does not lie between 0 and 1.
    """
    import numpy as np

    values = np.asarray(scores, dtype=float)
    if values.size == 0:
        raise ValueError("no scores: a mean and its interval need at least one")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    rng = np.random.default_rng(seed)
    block = max(1, _DRAWS_AT_ONCE // values.size)
    means = np.concatenate(
        [
            values[rng.integers(values.size, size=(min(block, resamples - done), values.size))].mean(axis=1)
            for done in range(0, resamples, block)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high), int(values.size), level)


def paired_interval(
    first: Sequence[float],
    second: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Return the mean of ``second - first`` over the questions, with its interval; above 0 the second is better.

    Both hold the same questions in the same order. The differences are resampled, so that an easy or hard question,
    which both share, does not widen the interval as it widens two separate ones.

    Raises:
        ValueError: if the two differ in length, or are empty.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} scores: a pair needs the same questions")
    differences = [b - a for a, b in zip(first, second, strict=True)]
    return mean_interval(differences, level=level, resamples=resamples, seed=seed)
