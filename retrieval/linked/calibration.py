"""A choice for one's own questions: trained on some, measured on others beside the one that was used so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...common.errors import QuestreeError
from ...data import Question
from ...metrics import Interval, mean_interval, share_interval
from ...metrics.found_passages import gold_names, normalise_title, passage_fingerprint
from ..lists import Array
from .choice import Choice, Seen, Trees, best_first, look
from .pool import QuestionTerms
from .retriever import LinkedRetriever

FEWEST, FOLDS = 20, 4
_WRONG = 70  # candidates of a question that the trainer sees beside the wanted ones; each counts for several
_SIZE = {"max_iter": 100, "max_leaf_nodes": 12, "max_depth": 6, "min_samples_leaf": 30}
_FIT = {"learning_rate": 0.09, "l2_regularization": 5, "max_features": 0.5, "early_stopping": False}

Measured = tuple[Interval, Interval]  # recall@5, and the share of questions that have their whole chain among 15


class Case(NamedTuple):
    """A question to train on, or to measure on."""

    id: str  # those of one id are never trained and measured apart
    question: QuestionTerms
    ranking: Array  # (found,) positions that the linked retriever found
    gold: Array  # (gold,) positions of the passages that are wanted
    weight: float = 1.0


def calibrate(
    retriever: LinkedRetriever, questions: Mapping[Any, Sequence[Question]], test_split: str = "test", *, seed: int = 0
) -> tuple[Choice, dict[str, Measured]]:
    """Return a choice that is trained on all splits of questions but one, and how it and others do on that one."""
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
    """Return the questions whose gold passages stand in the corpus, or whose gold titles one passage each bears."""
    names = [gold_names(asked.known_gold(), asked.gold_titles) for asked in questions]
    wanted, places = set(chain(*names)), defaultdict(list)
    for place, one in enumerate(map(retriever.passages.__getitem__, range(len(retriever.passages)))):
        for name in {one.id, passage_fingerprint(one.title, one.text), normalise_title(one.title)} & wanted:
            places[name].append(place)
    cases, found = [], retriever.asked([asked.question for asked in questions])
    for asked, of_asked, (question, ranking) in zip(questions, names, found, strict=True):
        at = [places[name] for name in of_asked]
        if at and all(len(those) == 1 or (those and asked.known_gold()) for those in at):
            cases.append(Case(asked.id, question, ranking, np.array(sorted(those[0] for those in at))))
    return cases


def measure(cases: Sequence[Case], found: Sequence[Array]) -> Measured:
    """Return how well cases were answered for which these positions were found, best first."""
    shares = [[np.isin(case.gold, one[:k]).mean() for k in (5, 15)] for case, one in zip(cases, found, strict=True)]
    return mean_interval([of[0] for of in shares]), share_interval(sum(of[1] == 1 for of in shares), len(cases))


def found_by(choice: Choice, cases: Sequence[Case]) -> list[Array]:
    """Return for each case the positions that a choice finds, best first."""
    return [choice.search(case.question, case.ranking)[0] for case in cases]


def train(cases: Sequence[Case], seed: int = 0) -> tuple[Choice, list[Array]]:
    """Return a choice; and for each case the positions, best first, found by one that was not trained on its fold."""
    before = [look(case.question, case.ranking) for case in cases]
    first, scores = _fitted(cases, before, seed)
    at = [(found, of_case) for (found, _), of_case in zip(before, scores, strict=True)]
    after = [look(case.question, case.ranking, *one) for case, one in zip(cases, at, strict=True)]
    second, again = _fitted(cases, after, seed)
    found = [best_first(one, those, *was)[0] for (one, _), those, was in zip(after, again, at, strict=True)]
    return Choice(first=first, second=second), found


def _fitted(cases: Sequence[Case], seen: Sequence[Seen], seed: int) -> tuple[Trees, list[Array]]:
    """Return what is fitted to all cases; and each case's scores by what was fitted to the other folds."""
    pairs = list(zip(cases, seen, strict=True))
    folds = [int(sha256(case.id.encode()).hexdigest(), 16) % FOLDS for case in cases]
    others = {one: [pair for pair, fold in zip(pairs, folds, strict=True) if fold != one] for one in set(folds)}
    by_others = {fold: _trees(those, seed) for fold, those in others.items()}
    return _trees(pairs, seed), [by_others[fold].scores(one) for fold, (_, one) in zip(folds, seen, strict=True)]


def _trees(pairs: Sequence[tuple[Case, Seen]], seed: int) -> Trees:
    """Return the trees that tell the wanted candidates of the cases from others."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]

    shown = []
    for place, (case, (positions, numbers)) in enumerate(pairs):
        wanted = np.isin(positions, case.gold)
        gold, wrong = np.flatnonzero(wanted), np.flatnonzero(~wanted)
        taken = np.random.default_rng([seed, place]).permutation(wrong)[:_WRONG]
        weights = case.weight * np.repeat([1, len(wrong) / max(len(taken), 1)], [len(gold), len(taken)])
        shown.append((numbers[[*gold, *taken]], wanted[[*gold, *taken]], weights))
    model = HistGradientBoostingClassifier(**_SIZE, **_FIT, random_state=seed)
    return as_trees(model.fit(*map(np.concatenate, zip(*shown, strict=True))))


def as_trees(model: Any) -> Trees:
    """Return a boosted classifier of scikit-learn, whose nodes stand in the order in which they are gone through."""
    trees = [one.nodes for (one,) in model._predictors]
    roots = np.cumsum([0, *map(len, trees)])[:-1]
    nodes, leaf = np.concatenate(trees), np.concatenate(trees)["is_leaf"].astype(bool)
    right = np.where(leaf, np.arange(len(nodes)), nodes["right"] + np.repeat(roots, list(map(len, trees))))
    return Trees(
        base=float(model._baseline_prediction[0, 0]),
        roots=roots.tolist(),
        feature=np.where(leaf, -1, nodes["feature_idx"]).tolist(),
        right=right.tolist(),
        number=[float(f"{one:.5g}") for one in np.where(leaf, nodes["value"], nodes["num_threshold"])],
    )
