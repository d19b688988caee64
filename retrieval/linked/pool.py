"""The candidates of a question: what the words find, and what is linked to the best of that, its seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bm25 import BM25Retriever
from .links import Links, head_hash

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

KINDS = ("names", "is named by", "shares a rare name", "shares a name", "bears the same title")
OUT, IN, RARE, SHARED, SAME = range(len(KINDS))
TAKEN = (15, 6, 10, 8, 0)
"""Candidates that each seed brings of each kind."""
BEARERS = 5
"""Passages at most for which a title in the question stands."""
_RARE = 20
"""Passages that a rare name joins."""
_REACH = 1_000
"""Passages that share names with a seed and are looked at, by its rarest names first."""


class Question:
    """What a question asks for: its words, by their places in the index of words, and the titles that it names.

    Args:
        text: of the question.
        words: finds passages by words.
        links: between the passages.
    """

    def __init__(self, text: str, words: BM25Retriever, links: Links) -> None:
        self.words, self.links = words, links
        found = words.postings(text)
        self.heads = np.array([head_hash(word) for word in found], np.int64)
        self._postings = list(found.values())
        self.idf = idf(len(links.title_of), np.array([len(places) for places, _ in self._postings], np.float64))
        self.total = max(float(self.idf.sum()), 1e-6)
        self.titles = links.titles_in(text)

    def weights(self, positions: Array) -> Array:
        """Return (positions, words): BM25's weight of each word in the passages at sorted positions."""
        weights = np.zeros((len(self._postings), len(positions)), np.float32)
        for row, (places, scores) in zip(weights, self._postings, strict=True):
            few, many = (places, positions) if len(places) < len(positions) else (positions, places)
            at = np.minimum(np.searchsorted(many, few), len(many) - 1)
            both = np.flatnonzero(many[at] == few)
            if many is positions:
                row[at[both]] = scores[both]
            else:
                row[both] = scores[at[both]]
        return weights.T


@dataclass(frozen=True)
class Candidates:
    """Candidates, and how they are linked to the seeds.

    Attributes:
        positions: (candidates,) sorted.
        weights: (candidates, words).
        links: (kinds, seeds, candidates): 1 for a link; for shared names, how much these tell.
        seeds: (seeds,) their places among the candidates.
        strength: (seeds,) how good each is held to be.
    """

    positions: Array
    weights: Array
    links: Array
    seeds: Array
    strength: Array


def idf(passages: int, often: Array) -> Array:
    """Return how much it tells that a passage holds what so many passages hold."""
    weights: Array = np.log(1 + (passages - often + 0.5) / (often + 0.5))
    return weights


def first_seeds(question: Question, ranking: Array, most: int = 12) -> Array:
    """Return the best passages of a ranking, and the best three of those that bear a title which the question names."""
    titled = _bearers(question, 3)
    seeds: Array = np.array(list(dict.fromkeys([*ranking[:most].tolist(), *titled.tolist()]))[: most + 8], np.int64)
    return seeds


def gather(question: Question, found: Array, seeds: Array, strength: Array | None = None) -> Candidates:
    """Return what was found, the seeds, and what is linked to the seeds, as far as it adds to them.

    A candidate adds to a seed what it holds of the question's words that the seed leaves open.

    Args:
        question: that is asked.
        found: (found,) positions of the passages that were found so far.
        seeds: (seeds,) positions.
        strength: (seeds,); by default their scores by words, of which the best is 1.
    """
    pairs = _linked(question.links, seeds)
    titled = _bearers(question, BEARERS)
    around = np.unique(np.concatenate([found, seeds, titled, *(place for _, place, _ in pairs)]))
    links = np.stack([_matrix(pair, len(seeds), around) for pair in pairs])
    places = np.searchsorted(around, seeds)
    links[:, np.arange(len(seeds)), places] = 0
    weights = question.weights(around)
    total = weights.sum(1)
    best = max(float(total.max(initial=0)), 1e-6)
    added = left_open(question, weights[places]) @ (weights / question.total).T
    kept = np.zeros(len(around), bool)
    kept[np.searchsorted(around, np.concatenate([found, seeds, titled]))] = True
    shares = links[RARE] + links[SHARED]
    for kind, order in (
        (OUT, added + 0.3 * total / best + 1e-3),
        (IN, added + 0.1 * total / best),
        (RARE, added + 0.03 * shares),
        (SHARED, added * saturated(shares)),
    ):
        _keep_best(np.where(links[kind] > 0, order, 0), TAKEN[kind], kept)
    chosen = np.flatnonzero(kept)
    strength = total[places] / best if strength is None else strength
    return Candidates(around[chosen], weights[chosen], links[:, :, chosen], np.searchsorted(chosen, places), strength)


def left_open(question: Question, weights: Array) -> Array:
    """Return (passages, words): how much of each word of the question the passages leave open, from 0 to 1."""
    opened: Array = 1 - np.minimum(1, 1.5 * weights / np.maximum(question.idf, 1e-6))
    return opened


def saturated(told: Array) -> Array:
    """Return how much shared names count, below 1."""
    share: Array = told / (told + 6)
    return share


def _bearers(question: Question, most: int) -> Array:
    """Return the passages that bear the titles in the question; of each title the best by words."""
    title, place = question.links.bearers.of(question.titles)
    positions, back = np.unique(place, return_inverse=True)
    order = np.lexsort((place, -question.weights(positions).sum(1)[back], title))
    within = np.arange(len(order)) - np.searchsorted(title[order], title[order])
    best: Array = place[order[within < most]]
    return best


def _linked(links: Links, seeds: Array) -> list[tuple[Array, Array, Array]]:
    """Return for each kind which seed (its number) is linked to which passage, and by how much."""
    source, title = links.links.of(seeds)
    named, target = links.bearers.of(title)
    own = links.title_of[seeds].astype(np.int64)
    titled = np.flatnonzero(own >= 0)
    mentioned, mention = links.mentions.of(own[titled])
    same, alike = links.bearers.of(own[titled])
    holder, name = links.names.of(seeds)
    often = links.named.lengths(name)
    reached = np.cumsum(often) - np.concatenate([[0], np.cumsum(often)])[np.searchsorted(holder, holder)]
    holder, name, often = holder[reached <= _REACH], name[reached <= _REACH], often[reached <= _REACH]
    shared, other = links.named.of(name)
    told = idf(len(links.title_of), often.astype(np.float64))[shared]
    rare = (often <= _RARE)[shared]
    ones = np.ones
    return [
        (source[named], target, ones(len(target))),
        (titled[mentioned], mention, ones(len(mention))),
        (holder[shared][rare], other[rare], told[rare]),
        (holder[shared], other, told),
        (titled[same], alike, ones(len(alike))),
    ]


def _matrix(pairs: tuple[Array, Array, Array], seeds: int, around: Array) -> Array:
    """Return (seeds, around) the sum of what the pairs say."""
    seed, place, told = pairs
    cell = seed * len(around) + np.searchsorted(around, place)
    sums = np.bincount(cell, weights=told, minlength=seeds * len(around))
    return sums.reshape(seeds, len(around)).astype(np.float32)


def _keep_best(order: Array, most: int, kept: Array) -> None:
    """Mark the best so many passages of each seed, of those whose order is above 0."""
    if order.shape[1] > most:
        best = np.argpartition(-order, most - 1, axis=1)[:, :most]
        np.put_along_axis(order, best, -np.take_along_axis(order, best, 1), 1)
        order = -order
    kept |= (order > 0).any(0)
