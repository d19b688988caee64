"""A choice for one's own questions: trained on some, measured on others beside the one that was used so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...common.errors import QuestreeError
from ...data import Question
from ...metrics import Interval, mean_interval, recall_at_k, share_interval
from ...metrics.found_passages import gold_names, names_as, passage_names
from ..lists import Array
from .choice import Choice
from .choice_training import Case, train
from .retriever import LinkedRetriever
from .search import search

FEWEST = 20


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
    card = {name: [str(one.recall), str(one.chains)] for name, one in measured.items()}
    return choice.model_copy(update={"card": {"seed": seed, "measured": card}}), measured


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
    cases = []
    for asked, of_asked in zip(questions, gold, strict=True):
        found = [places.get(name, []) for name in of_asked]
        if found and all(len(of_name) == 1 for of_name in found):
            ranking = retriever.rankings([asked.question])[0]
            at = np.array(sorted(of_name[0] for of_name in found), np.int64)
            cases.append(Case(asked.id, retriever.terms(asked.question), ranking, at))
    return cases


def measure(cases: Sequence[Case], found: Sequence[Array]) -> Found:
    """Return how well cases were answered for which these positions were found, best first."""

    def recalls(k: int) -> list[float]:
        pairs = zip(cases, found, strict=True)
        return [recall_at_k(one.tolist(), case.gold.tolist(), k) or 0.0 for case, one in pairs]

    return Found(mean_interval(recalls(5)), share_interval(recalls(15).count(1), len(cases)))


def found_by(choice: Choice, cases: Sequence[Case]) -> list[Array]:
    """Return for each case the positions that a choice finds, best first."""
    return [search(case.question, case.ranking, choice)[0] for case in cases]
