"""A linked search: candidates, a first choice, the candidates around that, and a second choice."""

from __future__ import annotations

import numpy as np

from ..lists import Array, places_in
from .choice import Choice
from .features import features
from .pool import QuestionTerms, gather

Seen = tuple[Array, Array]
"""The positions of candidates, rising, and their (candidates, features)."""
_SEEDS = 5
"""The best of the first choice, from which the second looks around."""


def search(question: QuestionTerms, ranking: Array, choice: Choice) -> tuple[Array, Array]:
    """Return the positions of the last candidates, best first, of equals the earlier; and their scores.

    Args:
        question: what it asks for.
        ranking: (found,) positions of the passages that the linked retriever found, best first.
        choice: made twice, by how candidates are linked to what the words found best, then to what it chose itself.
    """
    if not len(ranking):
        return ranking, ranking
    found, seen = first_stage(question, ranking)
    first = choice.first.scores(seen)
    positions, seen = second_stage(question, ranking, found, first)
    return best_first(positions, choice.second.scores(seen), found, first)


def best_first(positions: Array, scores: Array, found: Array, first: Array) -> tuple[Array, Array]:
    """Return the positions of the second stage, best first, and their scores: its own, and half of the first stage's.

    Args:
        positions, scores: of the second stage.
        found, first: of the first stage. What it did not find has the lowest of its scores.
    """
    rank = _ranks(positions, found)
    scores = scores + 0.5 * np.where(rank < 0, first.min(), first[np.maximum(rank, 0)])
    order = np.argsort(-scores, kind="stable")
    return positions[order], scores[order]


def first_stage(question: QuestionTerms, ranking: Array) -> Seen:
    """Return the candidates around what the linked retriever found best, and their features."""
    candidates = gather(question, ranking, question.seeds(ranking))
    rank = _ranks(candidates.positions, ranking)
    prior = np.where(rank < 0, 0, 1 / (1 + np.maximum(rank, 0)))
    return candidates.positions, features(question, candidates, rank, prior)


def second_stage(question: QuestionTerms, ranking: Array, found: Array, scores: Array) -> Seen:
    """Return the candidates around the best by the scores of the first stage, which found these, and their features."""
    likely = 1 / (1 + np.exp(-scores))
    best = np.argsort(-likely, kind="stable")[:_SEEDS]
    candidates = gather(question, found, found[best], likely[best])
    known = _ranks(candidates.positions, found)
    prior = np.where(known < 0, 0, likely[np.maximum(known, 0)])
    return candidates.positions, features(question, candidates, _ranks(candidates.positions, ranking), prior)


def _ranks(positions: Array, ranking: Array) -> Array:
    """Return (positions,) where each stands in the ranking; -1 where it does not."""
    order = np.argsort(ranking)
    at = places_in(ranking[order], positions)
    return np.where(at < 0, -1, order[at])
