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
from .choice import Choice, Network
from .pool import QuestionTerms
from .retriever import LinkedRetriever
from .search import Seen, first_stage, search, second_stage

FEWEST, FOLDS = 20, 4
_HIDDEN, _TURNS, _SEVERAL = 16, 16, 3
_WRONG = 0.6
"""The share of wrong candidates that is shown in each turn."""


class Case(NamedTuple):
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


class Found(NamedTuple):
    """Recall@5 of questions, and the share of them that have their whole chain among fifteen."""

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
        questions: by split; those without known gold passages, or titles that one passage bears, are left out.
        test_split: on which is measured; it is trained on the others.
        seed: of the trainer.

    Raises:
        QuestreeError: if those of fewer than 20 questions to train on stand in the corpus, or of none to measure on.
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
    """Return the questions whose gold passages stand in the corpus, each in one place.

    A passage that stands there twice is found at its first place; a title must be borne by one passage.
    """
    names = [gold_names(asked.known_gold(), asked.gold_titles) for asked in questions]
    wanted, places = set(chain(*names)), defaultdict(list)
    for place in range(len(retriever.passages) if wanted else 0):
        one = retriever.passages[place]
        for name in {one.id, passage_fingerprint(one.title, one.text), normalise_title(one.title)} & wanted:
            places[name].append(place)
    cases, found = [], retriever.asked([asked.question for asked in questions])
    for asked, of_asked, (question, ranking) in zip(questions, names, found, strict=True):
        at = [places[name] for name in of_asked]
        if at and all(len(those) == 1 or (those and asked.known_gold()) for those in at):
            cases.append(Case(asked.id, question, ranking, np.array(sorted(those[0] for those in at))))
    return cases


def measure(cases: Sequence[Case], found: Sequence[Array]) -> Found:
    """Return how well cases were answered for which these positions were found, best first."""
    shares = [[np.isin(case.gold, one[:k]).mean() for k in (5, 15)] for case, one in zip(cases, found, strict=True)]
    return Found(mean_interval([of[0] for of in shares]), share_interval(sum(of[1] == 1 for of in shares), len(cases)))


def found_by(choice: Choice, cases: Sequence[Case]) -> list[Array]:
    """Return for each case the positions that a choice finds, best first."""
    return [search(case.question, case.ranking, choice)[0] for case in cases]


def train(cases: Sequence[Case], seed: int = 0) -> tuple[Choice, list[Array]]:
    """Return a choice; and for each case the positions, best first, found by one that was not trained on its fold."""
    seen = [first_stage(case.question, case.ranking) for case in cases]
    first, scores = _fitted(cases, seen, seed)
    found = zip(cases, seen, scores, strict=True)
    seen = [second_stage(case.question, case.ranking, one, of_case) for case, (one, _), of_case in found]
    second, scores = _fitted(cases, seen, seed)
    best = [one[np.argsort(-of_case, kind="stable")] for (one, _), of_case in zip(seen, scores, strict=True)]
    return Choice(first=first, second=second), best


def _fitted(cases: Sequence[Case], seen: Sequence[Seen], seed: int) -> tuple[Network, list[Array]]:
    """Return what is fitted to all cases; and each case's scores by what was fitted to the other folds."""
    pairs = list(zip(cases, seen, strict=True))
    folds = [int(sha256(case.id.encode()).hexdigest(), 16) % FOLDS for case in cases]
    by_others = {
        fold: _network([pair for pair, of in zip(pairs, folds, strict=True) if of != fold], seed) for fold in set(folds)
    }
    return _network(pairs, seed), [by_others[fold].scores(one) for fold, (_, one) in zip(folds, seen, strict=True)]


def _network(shown: Sequence[tuple[Case, Seen]], seed: int) -> Network:
    """Return a network that tells the wanted candidates of the cases from others: the mean of several, as one."""
    from sklearn.neural_network import MLPClassifier  # type: ignore[import-untyped]

    numbers = np.concatenate([of_case for _, (_, of_case) in shown])
    wanted = np.concatenate([np.isin(positions, case.gold) for case, (positions, _) in shown])
    weights = np.concatenate([np.full(len(positions), case.weight) for case, (positions, _) in shown])
    middle, spread = numbers.mean(0), numbers.std(0) + 1e-6
    numbers, draw, several = (numbers - middle) / spread, np.random.default_rng(seed), []
    for number in range(_SEVERAL):
        one = MLPClassifier(
            (_HIDDEN,),
            alpha=0.01,
            batch_size=min(256, len(numbers) // 8),
            learning_rate_init=2e-3,
            random_state=seed + number,
        )
        for _ in range(_TURNS):
            taken = draw.random(len(weights)) < weights * np.where(wanted, 1, _WRONG)
            one.partial_fit(numbers[taken], wanted[taken], classes=[False, True])
        several.append(one)
    into = np.hstack([one.coefs_[0] for one in several]) / spread[:, None]
    bias = np.hstack([one.intercepts_[0] for one in several]) - middle @ into
    out = np.concatenate([*(one.coefs_[1] for one in several), [sum(one.intercepts_[1] for one in several)]]) / _SEVERAL
    return Network(into=np.vstack([into, bias]).round(5).tolist(), out=out[:, 0].round(5).tolist())
