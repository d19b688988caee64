"""The numbers by which candidates are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .pool import IN, KINDS, OUT, RARE, SAME, SHARED, Candidates, Question, left_open, saturated

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_NO_RANK = 200
_FIRST = 3
"""The seeds that a candidate is compared with one by one."""


def numbers(question: Question, candidates: Candidates, rank: Array, prior: Array) -> Array:
    """Return (candidates, numbers) float32; what each column is, `NUMBERS` says.

    Args:
        question: that is asked.
        candidates: of it.
        rank: (candidates,) in the retriever that is linked, from 0; -1 for none.
        prior: (candidates,) how good each is held to be before its links are seen.
    """
    columns = [
        *_alone(question, candidates, rank, prior),
        *_linked(question, candidates),
        *_beside(question, candidates),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _alone(question: Question, those: Candidates, rank: Array, prior: Array) -> list[Array]:
    """Return what a candidate is by itself, and what the question is."""
    links, count = question.links, len(those.positions)
    covered = (those.weights > 0) * (question.idf / question.total)
    total = those.weights.sum(1)
    ordered = np.sort(total)[::-1]
    title = links.title_of[those.positions]
    asked = (title >= 0) & np.isin(title, question.titles)
    head_of, head = links.heads.of(those.positions)
    where = np.argsort(question.heads)
    at = where[np.minimum(np.searchsorted(question.heads, head, sorter=where), len(where) - 1)] if len(where) else head
    hit = question.heads[at] == head if len(where) else np.zeros(len(head), bool)
    in_title = np.bincount(head_of[hit], weights=question.idf[at[hit]], minlength=count) / question.total
    share = np.bincount(head_of, weights=hit, minlength=count) / np.maximum(links.heads.lengths(those.positions), 1)
    mentioned = np.where(title >= 0, links.mentions.lengths(np.maximum(title, 0)) if len(links.mentions) else 0, 0)
    ranked = np.where(rank < 0, _NO_RANK, rank)
    better = np.empty(count)
    better[np.argsort(-prior, kind="stable")] = np.arange(count)
    alike = (
        len(question.idf),
        covered[ranked == 0].sum(),
        len(question.titles),
        (ordered[0] - ordered[1]) / max(float(ordered[0]), 1e-6) if count > 1 else 1,
    )
    return [
        np.log1p(ranked),
        np.where(rank < 0, 0, 1 / (1 + ranked)),
        covered.sum(1),
        covered.max(1, initial=0),
        total / max(float(ordered[0]), 1e-6),
        those.weights.max(1, initial=0) / question.total,
        asked * (1 + in_title),
        in_title,
        share,
        np.log1p(mentioned),
        np.log1p(links.links.lengths(those.positions)),
        np.log1p(links.names.lengths(those.positions)),
        prior,
        prior / max(float(prior.max()), 1e-9),
        np.log1p(better),
        *(np.full(count, one) for one in alike),
    ]


def _linked(question: Question, those: Candidates) -> list[Array]:
    """Return what the seeds say of a candidate: the best link of each kind, and what the two hold together."""
    held = (those.weights > 0) * (question.idf / question.total)
    adds = left_open(question, those.weights[those.seeds]) @ (those.weights / question.total).T
    joint = np.maximum(held[those.seeds][:, None], held[None]).sum(2)
    strength = those.strength[:, None]
    columns = []
    for kind in range(len(KINDS)):
        link = those.links[kind]
        there = link > 0
        value = saturated(link) if kind in (RARE, SHARED) else there
        columns += [_most(strength * value), _most(strength * there * joint), _most(strength * there * adds)]
    by_link = those.links[OUT] + those.links[IN]
    any_way = (by_link + those.links[SHARED]) > 0
    added = np.where(any_way, adds, 0)
    beside = added / np.maximum(added.max(1, keepdims=True, initial=0), 1e-9)
    title = question.links.title_of[those.positions[those.seeds]]
    asked = (title >= 0) & np.isin(title, question.titles)
    return [
        *columns,
        _most(beside * strength),
        _most(beside * added),
        _most(any_way * joint),
        _most(adds),
        (by_link > 0).sum(0),
        _most(by_link * asked[:, None]),
    ]


def _beside(question: Question, those: Candidates) -> list[Array]:
    """Return how a candidate stands to each of the first seeds."""
    held = (those.weights > 0) * (question.idf / question.total)
    together = held[those.seeds[:2]].max(0, initial=0)
    columns = [np.maximum(held - together, 0).sum(1)]
    for number in range(_FIRST):
        if number >= len(those.seeds):
            columns += [np.zeros(len(those.positions))] * 5
            continue
        link, seed = those.links[:, number], those.seeds[number]
        itself = np.arange(len(those.positions)) == seed
        columns += [
            link[OUT] + 2 * link[IN],
            saturated(link[SHARED]),
            np.maximum(held - held[seed], 0).sum(1),
            (link[SAME] > 0) + 2 * itself,
            np.full(len(those.positions), those.strength[number]),
        ]
    return columns


def _most(values: Array) -> Array:
    most: Array = values.max(0, initial=0)
    return most
