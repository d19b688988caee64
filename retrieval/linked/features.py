"""The numbers by which candidates are chosen."""

from __future__ import annotations

import numpy as np

from ..lists import Array
from .pool import IN, OUT, SAME, Candidates, QuestionTerms

FEATURES = 38
_NO_RANK = 200


def features(question: QuestionTerms, those: Candidates, rank: Array, prior: Array) -> Array:
    """Return (candidates, features) float32.

    Args:
        question: what it asks for.
        those: its candidates.
        rank: (candidates,) in the retriever that is linked, from 0; -1 for none.
        prior: (candidates,) how good each is held to be before its links are seen.
    """
    held = (those.weights > 0) * (question.idf / question.total)  # the share of the question that each word is
    columns = [*_alone(question, those, held, rank, prior), *_linked(question, those, held)]
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.float32)


def _alone(question: QuestionTerms, those: Candidates, held: Array, rank: Array, prior: Array) -> list[Array]:
    """Return what a candidate is by itself, and at the end what the question is."""
    links, total = question.links, those.weights.sum(1)
    title = links.title_of[those.positions]
    best, second = np.sort(np.append(total, [0, 0]))[:-3:-1]
    best = max(float(best), 1e-6)
    mentioned = np.where(title >= 0, links.mentions.lengths(np.maximum(title, 0)) if len(links.mentions) else 0, 0)
    ranked = np.where(rank < 0, _NO_RANK, rank)
    better = np.empty(len(title))
    better[np.argsort(-prior, kind="stable")] = np.arange(len(title))
    return [
        np.log1p(ranked),
        np.where(rank < 0, 0, 1 / (1 + ranked)),
        held.sum(1),
        held.max(1, initial=0),
        total / best,
        those.weights.max(1, initial=0) / question.total,
        np.isin(title, question.titles),
        np.log1p(mentioned),
        np.log1p(links.links.lengths(those.positions)),
        np.log1p(links.names.lengths(those.positions)),
        prior,
        prior / max(float(prior.max()), 1e-9),
        np.log1p(better),
        *map(np.asarray, (len(question.idf), held[ranked == 0].sum(), len(question.titles), (best - second) / best)),
    ]


def _linked(question: QuestionTerms, those: Candidates, held: Array) -> list[Array]:
    """Return what the seeds say of a candidate: the best link of each kind, and what the two hold together."""
    links, adds, strength = those.links, those.adds, those.strength[:, None]
    joint = np.maximum(held[those.seeds][:, None], held[None]).sum(2)
    any_way, by_link = links[:SAME].max(0) > 0, links[[OUT, IN]].max(0)
    added = np.where(any_way, adds, 0)
    beside = added / np.maximum(added.max(1, keepdims=True, initial=0), 1e-9)
    named = np.isin(question.links.title_of[those.positions[those.seeds]], question.titles)[:, None]
    by_kind = [links * strength, (links > 0) * strength * joint, (links > 0) * strength * adds]
    either = [beside * strength, beside * added, any_way * joint, adds, by_link * named]
    return [*np.concatenate(by_kind).max(1, initial=0), *np.stack(either).max(1, initial=0), (by_link > 0).sum(0)]
