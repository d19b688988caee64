"""Training the choice on questions whose passages are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from ..lists import Array
from .choice import Choice, Trees
from .pool import QuestionTerms
from .search import Seen, best_first, first_stage, second_stage

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


@dataclass(frozen=True)
class Case:
    """A question to train on.

    Attributes:
        id: of the question; those of one id are never trained and measured apart.
        question: what it asks for.
        ranking: (found,) positions that the linked retriever found.
        gold: (gold,) positions of the passages that are wanted.
        weight: how much it counts.
    """

    id: str
    question: QuestionTerms
    ranking: Array
    gold: Array
    weight: float = 1.0

    @property
    def fold(self) -> int:
        """Return the part of the questions that it belongs to; by its id alone."""
        return int(sha256(self.id.encode()).hexdigest(), 16) % FOLDS


def train(cases: Sequence[Case], seed: int = 0) -> tuple[Choice, list[Array]]:
    """Return a choice; and for each case the positions, best first, found by one that was not trained on its fold."""
    before = [first_stage(case.question, case.ranking) for case in cases]
    first, scores = fitted(cases, before, seed), _cross_fitted(cases, before, seed)
    after = [
        second_stage(case.question, case.ranking, found, of_case)
        for case, (found, _), of_case in zip(cases, before, scores, strict=True)
    ]
    second = fitted(cases, after, seed)
    stages = zip(after, _cross_fitted(cases, after, seed), before, scores, strict=True)
    best = [
        best_first(positions, of_case, found, earlier)[0] for (positions, _), of_case, (found, _), earlier in stages
    ]
    return Choice(first=first, second=second), best


def fitted(cases: Sequence[Case], seen: Sequence[Seen], seed: int) -> Trees:
    """Return the trees that tell the wanted candidates of the cases from others."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]

    numbers, wanted, weights = [], [], []
    for place, (case, (positions, of_case)) in enumerate(zip(cases, seen, strict=True)):
        gold = np.isin(positions, case.gold)
        wrong = np.flatnonzero(~gold)
        taken = np.random.default_rng([seed, place]).permutation(wrong)[:_WRONG]
        shown = np.concatenate([np.flatnonzero(gold), taken])
        numbers.append(of_case[shown])
        wanted.append(gold[shown])
        weights.append(np.where(gold[shown], 1, len(wrong) / max(len(taken), 1)) * case.weight)
    model = HistGradientBoostingClassifier(**_TREES, random_state=seed)
    return as_trees(model.fit(np.concatenate(numbers), np.concatenate(wanted), np.concatenate(weights)))


def as_trees(model: Any) -> Trees:
    """Return a boosted classifier of scikit-learn as trees, its nodes in the order in which they are gone through."""
    trees = Trees.model_construct(
        base=float(model._baseline_prediction[0, 0]), roots=[], feature=[], right=[], number=[]
    )

    def add(nodes: Any, place: int) -> None:
        node, own = nodes[place], len(trees.feature)
        leaf = bool(node["is_leaf"])
        trees.feature.append(-1 if leaf else int(node["feature_idx"]))
        trees.number.append(float(f"{node['value'] if leaf else node['num_threshold']:.5g}"))
        trees.right.append(own)
        if not leaf:
            add(nodes, node["left"])
            trees.right[own] = len(trees.feature)
            add(nodes, node["right"])

    for (tree,) in model._predictors:
        trees.roots.append(len(trees.feature))
        add(tree.nodes, 0)
    return trees


def _cross_fitted(cases: Sequence[Case], seen: Sequence[Seen], seed: int) -> list[Array]:
    """Return the scores of each case's candidates, by trees that were fitted to the other folds."""
    scores = [np.zeros(0)] * len(cases)
    folds = [case.fold for case in cases]
    for fold in set(folds):
        others = [place for place, one in enumerate(folds) if one != fold]
        trees = fitted([cases[place] for place in others], [seen[place] for place in others], seed)
        for place in (place for place, one in enumerate(folds) if one == fold):
            scores[place] = trees.scores(seen[place][1])
    return scores
