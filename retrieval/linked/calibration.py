"""A choice for one's own questions: trained on some, measured on others beside the one that comes with questree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import QuestreeError
from ...data import Question
from ...metrics import Interval, mean_interval, recall_at_k, share_interval
from ...metrics.found_passages import gold_names, names_as, passage_names
from .choice import Choice
from .retriever import LinkedRetriever
from .search import chosen
from .trainer import Case, train

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

FEWEST = 20
_FIVE, _CHAIN = 5, 15


@dataclass(frozen=True)
class Found:
    """How well a search finds the gold passages of questions.

    Attributes:
        recall: the share of the gold passages among five.
        chains: the share of questions with all of theirs among fifteen.
    """

    recall: Interval
    chains: Interval


def calibrate(
    retriever: LinkedRetriever,
    questions: Mapping[Any, Sequence[Question]],
    test_split: str = "test",
    *,
    seed: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[Choice, dict[str, Found]]:
    """Return a choice that is trained on questions, and how it and others find the passages of questions apart.

    Args:
        retriever: over the links that are calibrated.
        questions: by split; with known gold passages, or titles that one passage bears. Others are left out.
        test_split: on which is measured; it is trained on the others.
        seed: of the trainer.
        report: told what is done.

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
    choice, by_others = train(cases, seed, report)
    measured = {
        f"trained on {len(cases)} questions, each found by a choice without its quarter": found_of(cases, by_others),
        f"{test_split}, {retriever.base.name}": found_of(apart, [case.ranking for case in apart]),
        f"{test_split}, {retriever.name} so far": found_of(apart, [found_by(retriever.choice, case) for case in apart]),
        f"{test_split}, {retriever.name} calibrated": found_of(apart, [found_by(choice, case) for case in apart]),
    }
    card = {name: [str(one.recall), str(one.chains)] for name, one in measured.items()}
    return choice.model_copy(update={"card": {"seed": seed, "measured": card}}), measured


def cases_of(retriever: LinkedRetriever, questions: Sequence[Question]) -> list[Case]:
    """Return the questions whose gold passages stand in the corpus, each in one place."""
    import numpy as np

    wanted = {asked.id: gold_names(asked.known_gold(), asked.gold_titles) for asked in questions}
    places = _places(retriever, questions, {name for names in wanted.values() for name in names})
    cases = []
    for asked in questions:
        names = wanted[asked.id]
        if names and all(len(places.get(name, ())) == 1 for name in names):
            gold = np.array(sorted(places[name][0] for name in names), np.int64)
            ranking = retriever.rankings([asked.question])[0]
            cases.append(Case(asked.id, retriever.question(asked.question), ranking, gold))
    return cases


def found_of(cases: Sequence[Case], found: Sequence[Array]) -> Found:
    """Return recall and chains of cases, for which these positions were found, best first."""
    recalls = [
        recall_at_k(one.tolist(), case.gold.tolist(), _FIVE) or 0.0 for case, one in zip(cases, found, strict=True)
    ]
    chains = [
        recall_at_k(one.tolist(), case.gold.tolist(), _CHAIN) == 1 for case, one in zip(cases, found, strict=True)
    ]
    return Found(mean_interval(recalls), share_interval(sum(chains), len(chains)))


def found_by(choice: Choice, case: Case) -> Array:
    """Return the positions that a choice finds for a case, best first."""
    positions, scores = chosen(case.question, case.ranking, choice.first.scores, choice.second.scores)
    return case.found(positions, scores)


def _places(retriever: LinkedRetriever, questions: Sequence[Question], wanted: set[str]) -> dict[str, list[int]]:
    """Return where the passages of these names stand: one place, or for a title all that bear it."""
    known = {name for asked in questions for name in asked.known_gold()}
    by_title = any(asked.gold_titles and not asked.known_gold() for asked in questions)
    places: dict[str, list[int]] = {}
    for place in range(len(retriever.passages)):
        passage = retriever.passages[place]
        names = {*passage_names([passage], known), *(names_as([passage], []) if by_title else ())}
        for name in names.intersection(wanted):
            if name not in known or name not in places:  # a passage that stands there twice is found at its first place
                places.setdefault(name, []).append(place)
    return places
