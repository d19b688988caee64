"""A choice for one's own questions: trained on some, measured on others beside the one that was used so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...common.errors import QuestreeError
from ...data import Question
from ...metrics import Interval, mean_interval, recall_at_k, share_interval
from ...metrics.found_passages import gold_names, names_as, passage_names
from ..lists import Array
from .choice import Choice, Trees
from .pool import QuestionTerms
from .retriever import LinkedRetriever
from .search import Seen, best_first, first_stage, search, second_stage

FEWEST, FOLDS = 20, 4
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
    """A question to train on, or to measure on.

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


class Found(NamedTuple):
    """The share of the gold passages of questions among five, and of questions with all of theirs among fifteen."""

    recall: Interval
    chains: Interval


def calibrate(
    retriever: LinkedRetriever,
    questions: Mapping[Any, Sequence[Question]],
    test_split: str = "test",
    *,
    seed: int = 0,
) -> tuple[Choice, dict[str, Found]]:
    """Return a choice that is trained on questions, and how it and others find the passages of questions apart.

    Args:
        retriever: over the links that are calibrated.
        questions: by split; with known gold passages, or titles that one passage bears. Others are left out.
        test_split: on which is measured; it is trained on the others.
        seed: of the trainer.

    Raises:
        QuestreeError: if the gold passages of fewer than 20 questions to train on stand in the corpus, or of none to
            measure on.
    """
    cases = cases_of(retriever, [asked for name, those in questions.items() if name != test_split for asked in those])
    apart = cases_of(retriever, questions.get(test_split, ()))
    if len(cases) < FEWEST or not apart:
        raise QuestreeError(
            f"The gold passages of {len(cases)} questions to train on and of {len(apart)} to measure on ({test_split}) "
            f"stand in the passages of {retriever.base.name}; {FEWEST} and 1 are needed. Is this the task's corpus?"
        )
    choice, by_others = train(cases, seed)
    measured = {
        f"trained on {len(cases)} questions, each found by a choice without its quarter": measure(cases, by_others),
        f"{test_split}, {retriever.base.name}": measure(apart, [case.ranking for case in apart]),
        f"{test_split}, {retriever.name} so far": measure(apart, found_by(retriever.choice, apart)),
        f"{test_split}, {retriever.name} calibrated": measure(apart, found_by(choice, apart)),
    }
    card = {"seed": seed, "measured": {name: list(map(str, one)) for name, one in measured.items()}}
    return choice.model_copy(update={"card": card}), measured


def cases_of(retriever: LinkedRetriever, questions: Sequence[Question]) -> list[Case]:
    """Return the questions whose gold passages stand in the corpus, each in one place."""
    gold = [gold_names(asked.known_gold(), asked.gold_titles) for asked in questions]
    wanted, known = set(chain(*gold)), {name for asked in questions for name in asked.known_gold()}
    by_title = any(asked.gold_titles and not asked.known_gold() for asked in questions)
    places: dict[str, list[int]] = {}
    for place in range(len(retriever.passages)):
        passage = retriever.passages[place]
        names = {*passage_names([passage], known), *(names_as([passage], []) if by_title else ())}
        for name in names & wanted:
            if name not in known or name not in places:  # a passage that stands there twice is found at its first place
                places.setdefault(name, []).append(place)
    at = [[places.get(name, []) for name in of_asked] for of_asked in gold]
    told = [place for place, found in enumerate(at) if found and all(len(of_name) == 1 for of_name in found)]
    rankings = retriever.rankings([questions[place].question for place in told]) if told else []
    return [
        Case(asked.id, retriever.terms(asked.question), ranking, np.array(sorted(chain(*at[place])), np.int64))
        for place, asked, ranking in zip(told, map(questions.__getitem__, told), rankings, strict=True)
    ]


def measure(cases: Sequence[Case], found: Sequence[Array]) -> Found:
    """Return how well cases were answered for which these positions were found, best first."""

    def recalls(k: int) -> list[float]:
        return [recall_at_k(one.tolist(), case.gold.tolist(), k) or 0.0 for case, one in zip(cases, found, strict=True)]

    return Found(mean_interval(recalls(5)), share_interval(recalls(15).count(1), len(cases)))


def found_by(choice: Choice, cases: Sequence[Case]) -> list[Array]:
    """Return for each case the positions that a choice finds, best first."""
    return [search(case.question, case.ranking, choice)[0] for case in cases]


def train(cases: Sequence[Case], seed: int = 0) -> tuple[Choice, list[Array]]:
    """Return a choice; and for each case the positions, best first, found by one that was not trained on its fold."""
    before = [first_stage(case.question, case.ranking) for case in cases]
    first, scores = fitted(cases, before, seed), _cross_fitted(cases, before, seed)
    after = [
        second_stage(case.question, case.ranking, found, of_case)
        for case, (found, _), of_case in zip(cases, before, scores, strict=True)
    ]
    stages = zip(after, _cross_fitted(cases, after, seed), before, scores, strict=True)
    best = [best_first(one, of_case, found, earlier)[0] for (one, _), of_case, (found, _), earlier in stages]
    return Choice(first=first, second=fitted(cases, after, seed)), best


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
    for fold in {case.fold for case in cases}:
        others = [place for place, case in enumerate(cases) if case.fold != fold]
        trees = fitted([cases[place] for place in others], [seen[place] for place in others], seed)
        for place in (place for place, case in enumerate(cases) if case.fold == fold):
            scores[place] = trees.scores(seen[place][1])
    return scores
