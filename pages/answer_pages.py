"""Answers as one file by itself: one with its tree, or several runs' answers to the same questions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..common.errors import QuestreeError
from ..evaluation.analyses import check_same_question
from ..evaluation.records import Record
from ..evaluation.stored_runs import StoredRun
from .asked_question import AnsweredQuestion
from .html import as_html
from .question_page import shown_answer
from .trees import cards


def answer_page(answered: Any, *, simulated: bool) -> str:
    """Return a prediction, or what a run kept of one, as a page."""
    asked = AnsweredQuestion.of_prediction(answered, simulated=simulated)
    return as_html("one_answer.html", root=None, cards=cards(asked.tree), **shown_answer(asked))


def telling_questions(runs: Sequence[StoredRun], limit: int) -> list[str]:
    """Return the ids of the questions that all runs finished; first those on which the scores differ most.

    Raises:
        QuestreeError: if there is no such question.
    """
    others = [{record.id: record for record in run.records} for run in runs[1:]]
    spread: dict[str, float] = {}
    for record in runs[0].records:
        finished = [record, *(other[record.id] for other in others if record.id in other)]
        if len(finished) == len(runs):
            scores = [one.scores.get(run.metric, 0.0) for one, run in zip(finished, runs, strict=True)]
            spread[record.id] = max(scores) - min(scores)
    if not spread:
        raise QuestreeError("These runs have no question in common; give runs over the same questions.")
    return sorted(spread, key=lambda id: -spread[id])[:limit]


def case_studies(runs: Sequence[StoredRun], ids: Sequence[str]) -> str:
    """Return a page with each question, and every run's answer, references and tree side by side.

    Raises:
        QuestreeError: if a run did not finish one of the questions, or one of them differs between the runs.
    """
    cases = [[(run.name, _of(run, id)) for run in runs] for id in ids]
    for case in cases:
        check_same_question([record for _, record in case])
    return as_html("cases.html", root=None, cases=cases, cards=cards, simulated=any(run.simulated for run in runs))


def _of(run: StoredRun, id: str) -> Record:
    found = next((record for record in run.records if record.id == id), None)
    if found is None:
        raise QuestreeError(f"{run.name} has no question {id!r}; its first is {run.records[0].id!r}.")
    return found
