"""The candidates of a question: what the words find, and what is linked to the best of that, its seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.text import words_in
from ..bm25 import BM25Retriever
from ..lists import Array, Lists, place_among_equals, places_in
from .links import Links
from .names import named_titles

OUT, IN, RARE, SHARED, SAME = range(5)
"""Kinds of links: a seed names the candidate, is named by it, shares rare names with it, any names, or its title."""
_BEARERS = 5
"""Passages at most for which a title in the question stands."""
_RARE = 20
"""Passages that a rare name joins."""
_TAKEN = 30
"""Candidates that each seed brings of each kind, at most."""
_REACH = 1_000
"""Passages that are looked at from one seed by links of one kind; by its rarest names first."""


class QuestionTerms:
    """What a question asks for: its words, with their weights in passages, and the titles that it names."""

    def __init__(self, text: str, words: BM25Retriever, links: Links) -> None:
        self.links = links
        self._postings = list(words.postings(text).values())
        self.idf = idf(len(links.title_of), np.array([len(places) for places, _ in self._postings], np.float64))
        self.total = max(float(self.idf.sum()), 1e-6)
        self.titles = np.unique(named_titles([words_in(text)], links.titles)[1])

    def weights(self, positions: Array) -> Array:
        """Return (positions, words): BM25's weight of each word in the passages at sorted positions."""
        weights = np.zeros((len(self._postings), len(positions)), np.float32)
        for row, (places, scores) in zip(weights, self._postings, strict=True):
            at = places_in(places, positions)
            row[at >= 0] = scores[at[at >= 0]]
        return weights.T

    def left_open(self, weights: Array) -> Array:
        """Return (passages, words): how much of each word the passages with these weights leave open, from 0 to 1."""
        return np.asarray(1 - np.minimum(1, 1.5 * weights / np.maximum(self.idf, 1e-6)))

    def bearers(self, most: int) -> Array:
        """Return the passages that bear the titles in the question; of each title the best by words."""
        title, place = self.links.bearers.of(self.titles)
        positions, back = np.unique(place, return_inverse=True)
        order = np.lexsort((place, -self.weights(positions).sum(1)[back], title))
        return np.asarray(place[order[place_among_equals(title[order]) < most]])


@dataclass(frozen=True)
class Candidates:
    """Candidates, and how they are linked to the seeds.

    Attributes:
        positions: (candidates,) sorted.
        weights: (candidates, words).
        links: (kinds, seeds, candidates) from 0 to 1; that of shared names by how much these tell.
        seeds: (seeds,) their places among the candidates.
        strength: (seeds,) how good each is held to be.
        adds: (seeds, candidates) how much a candidate holds of the words that the seed leaves open.
    """

    positions: Array
    weights: Array
    links: Array
    seeds: Array
    strength: Array
    adds: Array


def gather(question: QuestionTerms, found: Array, seeds: Array, strength: Array | None = None) -> Candidates:
    """Return what was found, the seeds, and what is linked to the seeds, as far as it adds to them.

    Args:
        question: whose candidates they are.
        found, seeds: positions.
        strength: (seeds,); by default their scores by words, of which the best is 1.
    """
    pairs = _linked(question.links, seeds)
    given = np.concatenate([found, seeds, question.bearers(_BEARERS)])
    around = np.unique(np.concatenate([given, *(passage for _, passage, _ in pairs)]))
    links = np.stack([_matrix(pair, len(seeds), around) for pair in pairs])
    places = np.searchsorted(around, seeds)
    links[:, np.arange(len(seeds)), places] = 0
    weights = question.weights(around)
    total = weights.sum(1) / max(float(weights.sum(1).max(initial=0)), 1e-6)
    adds = question.left_open(weights[places]) @ (weights / question.total).T
    value = links * (adds + 0.2 * total + 1e-3)
    kept = np.isin(around, given)
    best = np.argpartition(-value, min(_TAKEN, len(around)) - 1, axis=2)[:, :, :_TAKEN]
    kept[best[np.take_along_axis(value, best, 2) > 0]] = True
    chosen = np.flatnonzero(kept)
    strength = total[places] if strength is None else strength
    seeds = np.searchsorted(chosen, places)
    return Candidates(around[chosen], weights[chosen], links[:, :, chosen], seeds, strength, adds[:, chosen])


def idf(passages: int, often: Array) -> Array:
    """Return how much it tells that a passage holds what so many passages hold."""
    return np.asarray(np.log(1 + (passages - often + 0.5) / (often + 0.5)))


def _linked(links: Links, seeds: Array) -> list[tuple[Array, Array, Array]]:
    """Return for each kind which seed (its number) is linked to which passage, and by how much."""
    own = links.title_of[seeds]
    titled = np.flatnonzero(own >= 0)
    holder, other, often = _followed(*links.names.of(seeds), links.named)
    others = [
        _followed(*links.links.of(seeds), links.bearers),
        _followed(titled, own[titled], links.mentions),
        _followed(titled, own[titled], links.bearers),
    ]
    out, into, same = ((seed, passage, np.full(len(seed), np.inf)) for seed, passage, _ in others)
    told, rare = idf(len(links.title_of), often.astype(np.float64)), often <= _RARE
    return [out, into, (holder[rare], other[rare], told[rare]), (holder, other, told), same]


def _followed(seed: Array, key: Array, lists: Lists) -> tuple[Array, Array, Array]:
    """Return what the keys of each seed lead to: seed, passage, and the length of the list in which it stands."""
    often = lists.lengths(key)
    reached = np.cumsum(often) - np.concatenate([[0], np.cumsum(often)])[np.searchsorted(seed, seed)]
    seed, key, often = (of_key[reached <= _REACH] for of_key in (seed, key, often))
    at, passage = lists.of(key)
    return seed[at], passage, often[at]


def _matrix(pairs: tuple[Array, Array, Array], seeds: int, around: Array) -> Array:
    """Return (seeds, around) the sum of what the pairs say, as a share of 1."""
    seed, place, told = pairs
    cell = seed * len(around) + np.searchsorted(around, place)
    sums = np.bincount(cell, weights=told, minlength=seeds * len(around)).reshape(seeds, len(around))
    return (1 - 6 / (sums + 6)).astype(np.float32)
