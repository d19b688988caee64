"""Training the choice on questions whose passages are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from .choice import Choice, Trees
from .pool import Question
from .search import first_stage, second_stage

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

FOLDS = 4
_WRONG = 70
"""Candidates of a question that are shown to the trainer beside the wanted ones; each counts for several."""
_TREES: dict[str, Any] = {
    "max_iter": 100,
    "max_leaf_nodes": 12,
    "max_depth": 6,
    "learning_rate": 0.09,
    "min_samples_leaf": 30,
    "l2_regularization": 5,
    "max_features": 0.5,
    "early_stopping": False,
}


@dataclass
class Case:
    """A question to train on.

    Attributes:
        id: of the question; those of one id are never trained and measured apart.
        question: as it is asked of the links.
        ranking: (found,) positions that the linked retriever found.
        gold: (gold,) positions of the passages that are wanted.
        weight: how much it counts.
    """

    id: str
    question: Question
    ranking: Array
    gold: Array
    weight: float = 1.0

    def found(self, positions: Array, scores: Array) -> Array:
        """Return the positions in the order of their scores."""
        ordered: Array = positions[np.argsort(-scores, kind="stable")]
        return ordered


Seen = tuple[Any, Any]
"""The candidates' positions, and their numbers."""


def train(
    cases: Sequence[Case], seed: int = 0, report: Callable[[str], None] = lambda _: None
) -> tuple[Choice, list[Array]]:
    """Return a choice; and for each case the positions, best first, found by one that was not trained on its fold."""
    report("first stage")
    first_seen = [_seen(first_stage(case.question, case.ranking)) for case in cases]
    first_scores = _cross_fitted(cases, first_seen, seed)
    report("second stage")
    second_seen = [
        _seen(second_stage(case.question, case.ranking, positions, scores))
        for case, (positions, _), scores in zip(cases, first_seen, first_scores, strict=True)
    ]
    second_scores = _cross_fitted(cases, second_seen, seed)
    choice = Choice(first=fitted(cases, first_seen, seed), second=fitted(cases, second_seen, seed))
    found = [
        case.found(positions, scores)
        for case, (positions, _), scores in zip(cases, second_seen, second_scores, strict=True)
    ]
    return choice, found


def fold_of(id: str) -> int:
    """Return the part of the questions that a question belongs to; by its id alone."""
    return int(sha256(id.encode()).hexdigest(), 16) % FOLDS


def fitted(cases: Sequence[Case], seen: Sequence[Seen], seed: int) -> Trees:
    """Return the trees that tell the wanted candidates of the cases from others."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]

    shown = [
        _shown(case, positions, np.random.default_rng([seed, place]))
        for place, (case, (positions, _)) in enumerate(zip(cases, seen, strict=True))
    ]
    numbers = np.concatenate([values[rows] for (_, values), (rows, _, _) in zip(seen, shown, strict=True)])
    model = HistGradientBoostingClassifier(**_TREES, random_state=seed)
    model.fit(
        numbers, np.concatenate([wanted for _, wanted, _ in shown]), np.concatenate([weight for *_, weight in shown])
    )
    return as_trees(model)


def as_trees(model: Any) -> Trees:
    """Return a boosted classifier of scikit-learn as trees, its nodes in the order in which they are gone through."""
    feature: list[int] = []
    right: list[int] = []
    number: list[float] = []
    roots = []

    def add(nodes: Any, place: int) -> None:
        node, own = nodes[place], len(feature)
        leaf = bool(node["is_leaf"])
        feature.append(-1 if leaf else int(node["feature_idx"]))
        number.append(float(f"{node['value'] if leaf else node['num_threshold']:.5g}"))
        right.append(own)
        if not leaf:
            add(nodes, node["left"])
            right[own] = len(feature)
            add(nodes, node["right"])

    for (tree,) in model._predictors:
        roots.append(len(feature))
        add(tree.nodes, 0)
    return Trees(
        base=float(model._baseline_prediction.ravel()[0]), roots=roots, feature=feature, right=right, number=number
    )


def _seen(stage: tuple[Any, Array]) -> Seen:
    candidates, values = stage
    return candidates.positions, values


def _cross_fitted(cases: Sequence[Case], seen: Sequence[Seen], seed: int) -> list[Array]:
    """Return the scores of each case's candidates, by trees that were fitted to the other folds."""
    scores: list[Array] = [np.zeros(0)] * len(cases)
    for fold in range(FOLDS):
        inside = [place for place, case in enumerate(cases) if fold_of(case.id) == fold]
        others = [place for place, case in enumerate(cases) if fold_of(case.id) != fold]
        if inside and others:
            trees = fitted([cases[place] for place in others], [seen[place] for place in others], seed)
            for place in inside:
                scores[place] = trees.scores(seen[place][1])
    return scores


def _shown(case: Case, positions: Array, random: Any) -> tuple[Array, Array, Array]:
    """Return the rows that the trainer sees, which of them are wanted, and what each counts."""
    wanted = np.isin(positions, case.gold)
    wrong = np.flatnonzero(~wanted)
    taken = random.permutation(wrong)[:_WRONG]
    rows = np.concatenate([np.flatnonzero(wanted), taken])
    each = len(wrong) / max(len(taken), 1)
    return rows, wanted[rows], np.where(wanted[rows], 1, each) * case.weight
