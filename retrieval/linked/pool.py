"""The candidates of a question: what the words find, and what is linked to the best of that, its seeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...common.text import words_in
from ..bm25 import BM25Retriever
from ..lists import Array, Lists, place_among_equals, places_in
from .links import Links
from .names import HEAD, named_titles, word_hash

OUT, IN, RARE, SHARED, SAME = KINDS = range(5)
"""Kinds of links: a seed names the candidate, is named by it, shares a rare name, any name, or the title with it."""
_TAKEN = {OUT: 15, IN: 6, RARE: 10, SHARED: 8}  # candidates that each seed brings of each kind
_SEEDS = 12
_BEARERS = 5  # passages at most for which a title in the question stands
_RARE = 20  # passages that a rare name joins
_REACH = 1_000  # passages that a seed leads to by each kind and are looked at, by its rarest names first


class QuestionTerms:
    """What a question asks for: its words, with their weights in passages, and the titles that it names."""

    def __init__(self, text: str, words: BM25Retriever, links: Links) -> None:
        self.links = links
        found = words.postings(text)
        self.heads = np.array([word_hash(word) & HEAD for word in found], np.int64)
        self._postings = list(found.values())
        self.idf = idf(len(links.title_of), np.array([len(places) for places, _ in self._postings], np.int64))
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

    def seeds(self, ranking: Array) -> Array:
        """Return the best passages of a ranking, and the best three that bear a title which the question names."""
        both = dict.fromkeys([*ranking[:_SEEDS].tolist(), *self.bearers(3).tolist()])
        return np.array([*both][: _SEEDS + 8], np.int64)


class Candidates(NamedTuple):
    """Candidates, and how they are linked to the seeds."""

    positions: Array  # (candidates,) sorted
    weights: Array  # (candidates, words)
    links: Array  # (kinds, seeds, candidates): 1 for a link; for shared names, how much these tell
    seeds: Array  # (seeds,) their places among the candidates
    strength: Array  # (seeds,) how good each is held to be


def gather(question: QuestionTerms, found: Array, seeds: Array, strength: Array | None = None) -> Candidates:
    """Return what was found, the seeds, and what is linked to these and holds words that they leave open."""
    pairs = _linked(question.links, seeds)
    given = np.concatenate([found, seeds, question.bearers(_BEARERS)])
    around = np.unique(np.concatenate([given, *(place for _, place, _ in pairs)]))
    size = len(seeds) * len(around)
    cells = [(seed * len(around) + np.searchsorted(around, place), told) for seed, place, told in pairs]
    sums = [np.bincount(cell, told, minlength=size) for cell, told in cells]
    links = np.stack(sums).reshape(len(pairs), len(seeds), len(around)).astype(np.float32)
    places = np.searchsorted(around, seeds)
    links[:, np.arange(len(seeds)), places] = 0
    weights = question.weights(around)
    total = weights.sum(1)
    highest = max(float(total.max(initial=0)), 1e-6)
    added = question.left_open(weights[places]) @ (weights / question.total).T
    shares = links[RARE] + links[SHARED]
    value = {
        OUT: added + 0.3 * total / highest + 1e-3,
        IN: added + 0.1 * total / highest,
        RARE: added + 0.03 * shares,
        SHARED: added * saturated(shares),
    }
    kept = np.isin(around, given)
    for kind, most in _TAKEN.items():
        worth = np.where(links[kind] > 0, value[kind], 0)
        best = np.argpartition(-worth, min(most, len(around)) - 1, axis=1)[:, :most]
        kept[best[np.take_along_axis(worth, best, 1) > 0]] = True
    chosen = np.flatnonzero(kept)
    strength = total[places] / highest if strength is None else strength
    return Candidates(around[chosen], weights[chosen], links[:, :, chosen], np.searchsorted(chosen, places), strength)


def ranks(positions: Array, ranking: Array) -> Array:
    """Return (positions,) where each stands in the ranking, from 0; -1 where it does not."""
    order = np.argsort(ranking, kind="stable")
    return np.asarray(np.append(order, -1)[places_in(ranking[order], positions)])


def idf(passages: int, often: Array) -> Array:
    """Return how much it tells that a passage holds what so many passages hold."""
    return np.asarray(np.log(1 + (passages - often + 0.5) / (often + 0.5)))


def saturated(told: Array) -> Array:
    """Return how much shared names count, below 1."""
    return np.asarray(told / (told + 6))


def _linked(links: Links, seeds: Array) -> list[tuple[Array, Array, Array | None]]:
    """Return for each kind which seed (its number) is linked to which passage, and by how much, if not by 1."""
    own = links.title_of[seeds]
    titled = np.flatnonzero(own >= 0)
    holder, other, often = _followed(*links.names.of(seeds), links.named)
    told, rare = idf(len(links.title_of), often), often <= _RARE
    return [
        (*_followed(*links.links.of(seeds), links.bearers)[:2], None),
        (*_followed(titled, own[titled], links.mentions)[:2], None),
        (holder[rare], other[rare], told[rare]),
        (holder, other, told),
        (*_followed(titled, own[titled], links.bearers)[:2], None),
    ]


def _followed(seed: Array, key: Array, lists: Lists) -> tuple[Array, Array, Array]:
    """Return what the keys of each seed lead to, up to so many: seed, passage, and the length of the list it is in."""
    often = lists.lengths(key)
    reached = np.cumsum(often) - np.concatenate([[0], np.cumsum(often)])[np.searchsorted(seed, seed)]
    seed, key, often = (of_key[reached <= _REACH] for of_key in (seed, key, often))
    at, passage = lists.of(key)
    return seed[at], passage, often[at]
