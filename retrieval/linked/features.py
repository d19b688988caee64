"""The numbers by which candidates are chosen."""

from __future__ import annotations

import numpy as np

from ..lists import Array
from .pool import IN, KINDS, OUT, RARE, SAME, SHARED, Candidates, QuestionTerms, ranks, saturated

FEATURES = 56
_NO_RANK = 200
_FIRST = 3  # seeds that a candidate is compared with one by one


def features(question: QuestionTerms, those: Candidates, rank: Array, prior: Array) -> Array:
    """Return (candidates, features); ranks are in the linked retriever, -1 for none; priors how good each seemed."""
    held = (those.weights > 0) * (question.idf / question.total)
    columns = [*_alone(question, those, held, rank, prior), *_linked(question, those, held), *_beside(those, held)]
    return np.stack(columns, axis=1).astype(np.float32)


def _alone(question: QuestionTerms, those: Candidates, held: Array, rank: Array, prior: Array) -> list[Array]:
    """Return what a candidate is by itself, and what the question is."""
    links, positions = question.links, those.positions
    total = those.weights.sum(1)
    ordered = np.sort(total)[::-1]
    best = max(float(ordered[0]), 1e-6)
    title = links.title_of[positions]
    of, head = links.heads.of(positions)
    at = ranks(head, question.heads)
    of, told = of[at >= 0], question.idf[at[at >= 0]]
    in_title = np.bincount(of, told, minlength=len(positions)) / question.total
    share = np.bincount(of, minlength=len(positions)) / np.maximum(links.heads.lengths(positions), 1)
    ranked = np.where(rank < 0, _NO_RANK, rank)
    lead = (ordered[0] - ordered[1]) / best if len(positions) > 1 else 1
    asked = (len(question.idf), held[ranked == 0].sum(), len(question.titles), lead)
    return [
        np.log1p(ranked),
        np.where(rank < 0, 0, 1 / (1 + ranked)),
        held.sum(1),
        held.max(1, initial=0),
        total / best,
        those.weights.max(1, initial=0) / question.total,
        np.isin(title, question.titles) * (1 + in_title),
        in_title,
        share,
        np.log1p(np.where(title >= 0, links.mentions.lengths(title), 0)),
        np.log1p(links.links.lengths(positions)),
        np.log1p(links.names.lengths(positions)),
        prior,
        prior / max(float(prior.max()), 1e-9),
        np.log1p(np.argsort(np.argsort(-prior, kind="stable"))),
        *(np.full(len(positions), one) for one in asked),
    ]


def _linked(question: QuestionTerms, those: Candidates, held: Array) -> list[Array]:
    """Return what the seeds say of a candidate: the best link of each kind, and what the two hold together."""
    adds = question.left_open(those.weights[those.seeds]) @ (those.weights / question.total).T
    joint = np.maximum(held[those.seeds][:, None], held[None]).sum(2)
    strength = those.strength[:, None]
    of_seeds = []
    for kind in KINDS:
        link, there = those.links[kind], those.links[kind] > 0
        value = saturated(link) if kind in (RARE, SHARED) else there
        of_seeds += [strength * value, strength * there * joint, strength * there * adds]
    by_link = those.links[OUT] + those.links[IN]
    any_way = (by_link + those.links[SHARED]) > 0
    added = np.where(any_way, adds, 0)
    beside = added / np.maximum(added.max(1, keepdims=True, initial=0), 1e-9)
    named = np.isin(question.links.title_of[those.positions[those.seeds]], question.titles)
    of_seeds += [beside * strength, beside * added, any_way * joint, adds, by_link * named[:, None]]
    *columns, last = (of_each.max(0, initial=0) for of_each in of_seeds)
    return [*columns, (by_link > 0).sum(0), last]


def _beside(those: Candidates, held: Array) -> list[Array]:
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
