"""The numbers by which candidates are chosen."""

from __future__ import annotations

import numpy as np

from ..lists import Array
from .pool import IN, KINDS, OUT, RARE, SAME, SHARED, Candidates, QuestionTerms, saturated

FEATURES = 56
_NO_RANK = 200
_FIRST = 3
"""The seeds that a candidate is compared with one by one."""


def features(question: QuestionTerms, those: Candidates, rank: Array, prior: Array) -> Array:
    """Return (candidates, features) float32.

    Args:
        question: what it asks for.
        those: its candidates.
        rank: (candidates,) in the retriever that is linked, from 0; -1 for none.
        prior: (candidates,) how good each is held to be before its links are seen.
    """
    held = (those.weights > 0) * (question.idf / question.total)
    columns = [
        *_alone(question, those, held, rank, prior),
        *_linked(question, those, held),
        *_beside_first_seeds(those, held),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _alone(question: QuestionTerms, those: Candidates, held: Array, rank: Array, prior: Array) -> list[Array]:
    """Return what a candidate is by itself, and what the question is."""
    links, count = question.links, len(those.positions)
    total = those.weights.sum(1)
    ordered = np.sort(total)[::-1]
    title = links.title_of[those.positions]
    in_title, share = _words_in_title(question, those.positions)
    mentioned = np.where(title >= 0, links.mentions.lengths(np.maximum(title, 0)) if len(links.mentions) else 0, 0)
    ranked = np.where(rank < 0, _NO_RANK, rank)
    better = np.empty(count)
    better[np.argsort(-prior, kind="stable")] = np.arange(count)
    lead = (ordered[0] - ordered[1]) / max(float(ordered[0]), 1e-6) if count > 1 else 1
    return [
        np.log1p(ranked),
        np.where(rank < 0, 0, 1 / (1 + ranked)),
        held.sum(1),
        held.max(1, initial=0),
        total / max(float(ordered[0]), 1e-6),
        those.weights.max(1, initial=0) / question.total,
        np.isin(title, question.titles) * (1 + in_title),
        in_title,
        share,
        np.log1p(mentioned),
        np.log1p(links.links.lengths(those.positions)),
        np.log1p(links.names.lengths(those.positions)),
        prior,
        prior / max(float(prior.max()), 1e-9),
        np.log1p(better),
        *(np.full(count, one) for one in (len(question.idf), held[ranked == 0].sum(), len(question.titles), lead)),
    ]


def _words_in_title(question: QuestionTerms, positions: Array) -> tuple[Array, Array]:
    """Return the share of the question's words that titles hold, by how much they tell; and of a title's words."""
    lists, count = question.links.heads, len(positions)
    if not len(question.heads):
        return np.zeros(count), np.zeros(count)
    head_of, head = lists.of(positions)
    order = np.argsort(question.heads)
    at = order[np.minimum(np.searchsorted(question.heads, head, sorter=order), len(order) - 1)]
    hit = question.heads[at] == head
    told = np.bincount(head_of[hit], weights=question.idf[at[hit]], minlength=count) / question.total
    return told, np.bincount(head_of, weights=hit, minlength=count) / np.maximum(lists.lengths(positions), 1)


def _linked(question: QuestionTerms, those: Candidates, held: Array) -> list[Array]:
    """Return what the seeds say of a candidate: the best link of each kind, and what the two hold together."""
    adds = question.left_open(those.weights[those.seeds]) @ (those.weights / question.total).T
    joint = np.maximum(held[those.seeds][:, None], held[None]).sum(2)
    strength = those.strength[:, None]
    columns = []
    for kind in KINDS:
        link = those.links[kind]
        there = link > 0
        value = saturated(link) if kind in (RARE, SHARED) else there
        columns += [_most(strength * value), _most(strength * there * joint), _most(strength * there * adds)]
    by_link = those.links[OUT] + those.links[IN]
    any_way = (by_link + those.links[SHARED]) > 0
    added = np.where(any_way, adds, 0)
    beside = added / np.maximum(added.max(1, keepdims=True, initial=0), 1e-9)
    named = np.isin(question.links.title_of[those.positions[those.seeds]], question.titles)
    return [
        *columns,
        _most(beside * strength),
        _most(beside * added),
        _most(any_way * joint),
        _most(adds),
        (by_link > 0).sum(0),
        _most(by_link * named[:, None]),
    ]


def _beside_first_seeds(those: Candidates, held: Array) -> list[Array]:
    """Return how a candidate stands to each of the first seeds."""
    columns = [np.maximum(held - held[those.seeds[:2]].max(0, initial=0), 0).sum(1)]
    for number, seed in enumerate(those.seeds[:_FIRST]):
        link, itself = those.links[:, number], np.arange(len(held)) == seed
        columns += [
            link[OUT] + 2 * link[IN],
            saturated(link[SHARED]),
            np.maximum(held - held[seed], 0).sum(1),
            (link[SAME] > 0) + 2 * itself,
            np.full(len(held), those.strength[number]),
        ]
    return columns + [np.zeros(len(held))] * (1 + 5 * _FIRST - len(columns))


def _most(values: Array) -> Array:
    return np.asarray(values.max(0, initial=0))
