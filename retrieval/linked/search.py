"""A linked search: candidates, a first choice, the candidates around that, and a second choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .numbers import numbers
from .pool import Candidates, Question, first_seeds, gather

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

Score = Callable[["Array"], "Array"]
"""Gives the log-odds of (candidates, numbers)."""
_SEEDS = 5
"""The best of the first choice, from which the second looks around."""


def chosen(question: Question, ranking: Array, first: Score, second: Score) -> tuple[Array, Array]:
    """Return the positions of the last candidates, rising, and what the second choice scores them.

    Args:
        question: that is asked.
        ranking: (found,) positions of the passages that the linked retriever found, best first.
        first, second: the two choices.
    """
    candidates, seen = first_stage(question, ranking)
    candidates, seen = second_stage(question, ranking, candidates.positions, first(seen))
    return candidates.positions, second(seen)


def first_stage(question: Question, ranking: Array) -> tuple[Candidates, Array]:
    """Return the candidates around what the linked retriever found best, and their numbers.

    Args:
        question: that is asked.
        ranking: (found,) positions of the passages that the linked retriever found, best first.
    """
    candidates = gather(question, ranking, first_seeds(question, ranking))
    rank = _ranks(candidates.positions, ranking)
    return candidates, numbers(question, candidates, rank, np.where(rank < 0, 0, 1 / (1 + np.maximum(rank, 0))))


def second_stage(question: Question, ranking: Array, found: Array, chosen: Array) -> tuple[Candidates, Array]:
    """Return the candidates around the best of the first choice, and their numbers.

    Args:
        question: that is asked.
        ranking: as for `first_stage`.
        found: (found,) its candidates.
        chosen: (found,) the log-odds that it gave them.
    """
    likely = 1 / (1 + np.exp(-chosen))
    best = np.argsort(-likely, kind="stable")[:_SEEDS]
    candidates = gather(question, found, found[best], likely[best])
    known = _ranks(candidates.positions, found)
    prior = np.where(known < 0, 0, likely[np.maximum(known, 0)])
    return candidates, numbers(question, candidates, _ranks(candidates.positions, ranking), prior)


def _ranks(positions: Array, ranking: Array) -> Array:
    """Return (positions,) where each stands in the ranking; -1 where it does not."""
    order = np.argsort(ranking)
    at = order[np.minimum(np.searchsorted(ranking, positions, sorter=order), len(ranking) - 1)]
    ranks: Array = np.where(ranking[at] == positions, at, -1)
    return ranks
