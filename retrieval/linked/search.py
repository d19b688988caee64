"""A linked search: candidates, a first choice, the candidates around the best of that, and a second choice."""

from __future__ import annotations

import numpy as np

from ..lists import Array, places_in
from .choice import Choice
from .features import features
from .pool import QuestionTerms, gather

Seen = tuple[Array, Array]
"""The positions of candidates, rising, and their (candidates, features)."""
_FIRST_SEEDS, _SECOND_SEEDS = 12, 5
"""From so many of the best by words, and then of the first choice, the links are followed."""


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
    positions, seen = second_stage(question, ranking, found, choice.first.scores(seen))
    scores = choice.second.scores(seen)
    order = np.argsort(-scores, kind="stable")
    return positions[order], scores[order]


def first_stage(question: QuestionTerms, ranking: Array) -> Seen:
    """Return the candidates around what the linked retriever found best, and their features."""
    seeds = dict.fromkeys([*ranking[:_FIRST_SEEDS].tolist(), *question.bearers(3).tolist()])
    candidates = gather(question, ranking, np.array(list(seeds)[: _FIRST_SEEDS + 8]))
    rank = _ranks(candidates.positions, ranking)
    return candidates.positions, features(question, candidates, rank, np.where(rank < 0, 0, 1 / (1 + abs(rank))))


def second_stage(question: QuestionTerms, ranking: Array, found: Array, scores: Array) -> Seen:
    """Return the candidates around the best by the scores of the first stage, which found these, and their features."""
    likely = 1 / (1 + np.exp(-scores))
    best = np.argsort(-likely, kind="stable")[:_SECOND_SEEDS]
    candidates = gather(question, found, found[best], likely[best])
    known = places_in(found, candidates.positions)
    rank = _ranks(candidates.positions, ranking)
    return candidates.positions, features(question, candidates, rank, np.where(known < 0, 0, likely[known]))


def _ranks(positions: Array, ranking: Array) -> Array:
    """Return (positions,) where each stands in the ranking; -1 where it does not."""
    order = np.argsort(ranking)
    at = places_in(ranking[order], positions)
    return np.where(at < 0, -1, order[at])
