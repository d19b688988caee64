"""Runs as static pages that link to one another: the comparison, lists of questions, and how each was answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup

from ..evaluation.records import Record
from ..evaluation.tracking import flat
from ..programs.tree_views import node_view
from .asked_question import AnsweredQuestion
from .html import as_html
from .question_page import shown_answer
from .shown_runs import AnswerLine, ShownRuns
from .steps import step
from .trees import cards

ROWS = 200
"""Questions on a page of a list, at most, and runs on a page of the comparison, or of a question."""
CELLS = 10_000
"""Answers on a page of a list, at most: some megabyte."""


class Answer(NamedTuple):
    """What one run answered, and the page that shows how."""

    run: str
    row: AnswerLine
    page: str


_ByRun = Mapping[str, Answer]


class QuestionList(NamedTuple):
    """Questions that have something in common, as numbers, and the runs whose answers stand beside them."""

    page: str
    title: str
    about: str
    numbers: Sequence[int]
    runs: Sequence[str]

    @property
    def parts(self) -> list[str]:
        """Return the names of its pages."""
        return _parts(self.page, len(self.numbers), self.rows)

    @property
    def rows(self) -> int:
        """Return how many questions stand on a page: the fewer, the more runs."""
        return min(ROWS, max(1, CELLS // len(self.runs)))


def _parts(page: str, rows: int, most: int) -> list[str]:
    """Return the names of the pages of a list, of which each shows so many rows at most."""
    stem = page.removesuffix(".html")
    return [page, *(f"{stem}-part-{n}.html" for n in range(2, -(-rows // most) + 1))]


class Study:
    """Runs as pages by name, each made when it is asked for.

    Args:
        title: of the whole.
        shown: the runs; the first is the one that the others are compared with.
        root: the way from a page to the place of ``static/``; a page at a server leads back to its other pages.
        mlflow: the address of MLflow's pages, for links to traces; empty if it is not known.
    """

    def __init__(self, title: str, shown: ShownRuns, root: str = "", mlflow: str = ""):
        self.title, self._shown, self._root, self._mlflow = title, shown, root, mlflow
        self.runs = shown.runs
        self.ids = list(dict.fromkeys(id for run in self.runs.values() for id in run.rows))
        self._lists = {one.page: one for one in _lists(self)}
        self._begins = _parts("index.html", len(self.runs), ROWS)

    def names(self) -> Iterator[str]:
        """Yield the name of each page, the one to begin at first."""
        yield from self._begins
        for one in self._lists.values():
            yield from one.parts
        for number in self.numbers:
            answers = self.answers(number)
            yield from _question_parts(number, answers)
            yield from (answer.page for answer in answers)

    def page(self, name: str) -> str | None:
        """Return the content of a page; None if there is none of this name."""
        if name in self._begins:
            return self._begin(name)
        if asked := re.match(r"question-(\d{1,9})[-.]", name):
            number = int(asked[1])
            return self._question(number, name) if number in self.numbers else None
        return next((self._list(one, name) for one in self._lists.values() if name in one.parts), None)

    def _begin(self, name: str) -> str:
        """Return a part of the comparison: its rows, and what was run; the first part has the plots."""
        part = self._begins.index(name)
        here = slice(part * ROWS, (part + 1) * ROWS)
        compared = [
            {
                **one,
                "lines": one["lines"][here],
                "details": one["details"][here],
                "plots": [] if part else [(heading, Markup(svg)) for heading, svg in one["plots"]],
            }
            for one in self._shown.compared
            if one["lines"][here]
        ]
        runs = list(self.runs.values())[here]
        simulated = any(run.simulated for run in self.runs.values())
        shown: dict[str, Any] = {"title": self.title, "compared": compared, "simulated": simulated}
        shown["left_out"] = self._shown.left_out
        shown |= {"lists": list(self._lists.values()), "runs": runs, "parts": self._begins, "part": part}
        parameters = {run.name: list(flat(run.identity)) for run in runs}
        return self._drawn("study.html", name, parameters=parameters, **shown)

    def _list(self, one: QuestionList, name: str) -> str:
        part = one.parts.index(name)
        numbers = one.numbers[part * one.rows : (part + 1) * one.rows]
        rows = [(number, {answer.run: answer for answer in self.answers(number)}) for number in numbers]
        shown: dict[str, Any] = {"lists": list(self._lists.values()), "listed": one, "rows": rows, "part": part}
        return self._drawn("question_list.html", name, **shown)

    def _question(self, number: int, name: str) -> str | None:
        """Return a page of a question: one run's answer, or a part of all answers."""
        answers = self.answers(number)
        parts = _question_parts(number, answers)
        if name in parts:
            return self._answers(number, answers, parts, parts.index(name))
        place = next((place for place, answer in enumerate(answers) if answer.page == name), None)
        return None if place is None else self._answer(number, answers, parts[place // ROWS], place)

    def _answers(self, number: int, answers: Sequence[Answer], parts: Sequence[str], part: int) -> str:
        records = {answer.run: self._shown.record(answer.run, self.ids[number - 1]) for answer in answers}
        here = answers[part * ROWS : (part + 1) * ROWS]
        trees = {answer.run: cards(tree) if (tree := records[answer.run].tree) else [] for answer in here}
        shown: dict[str, Any] = {"answers": here, "records": records, "trees": trees, "parts": parts, "part": part}
        return self._drawn("answers.html", differs=_differing(records), mlflow=self._mlflow, **shown)

    def _answer(self, number: int, answers: Sequence[Answer], whole: str, place: int) -> str:
        answer, id, first = answers[place], self.ids[number - 1], place // ROWS * ROWS
        record = self._shown.record(answer.run, id)
        asked = AnsweredQuestion.of_prediction(record, simulated=self.runs[answer.run].simulated)
        steps = [step(place, one) for place, one in enumerate(self._shown.asked(answer.run, id), start=1)]
        shown: dict[str, Any] = {"answer": answer, "answers": answers[first : first + ROWS], "whole": whole}
        shown |= {"record": record, "cards": cards(record.tree) if record.tree else [], "steps": steps}
        return self._drawn("answer.html", mlflow=self._mlflow, **shown, **shown_answer(asked))

    def _drawn(self, template: str, here: str = "", **values: Any) -> str:
        return as_html(template, root=self._root, here=here, **values)

    @property
    def numbers(self) -> range:
        """Return the numbers of the questions."""
        return range(1, len(self.ids) + 1)

    def answers(self, number: int) -> list[Answer]:
        """Return what each run answered to a question; nothing of a run that does not have it."""
        id = self.ids[number - 1]
        return [
            Answer(name, run.rows[id], f"question-{number}-{place}.html")
            for place, (name, run) in enumerate(self.runs.items(), start=1)
            if id in run.rows
        ]


def _question_parts(number: int, answers: Sequence[Answer]) -> list[str]:
    """Return the names of the pages that show all answers to a question."""
    return _parts(f"question-{number}.html", len(answers), ROWS)


def _differing(records: Mapping[str, Record]) -> dict[str, set[int]]:
    """Return for each run the ids of the nodes that the first one's tree lacks; for the first, that all others lack."""
    said = {run: [node_view(node) for node in one.tree.nodes] if one.tree else [] for run, one in records.items()}
    first, *others = said
    differing = {}
    for run, views in said.items():
        known = {view for other in ([first] if run != first else others) for view in said[other]}
        differing[run] = {id for id, view in enumerate(views) if others and view not in known}
    return differing


def _lists(study: Study) -> Iterator[QuestionList]:
    """Yield the lists that have a question in them, all questions first."""
    every = {number: {one.run: one for one in study.answers(number)} for number in study.numbers}
    yield QuestionList("questions.html", "All questions", "", list(every), list(study.runs))
    for page, title, about, belongs, runs in _filters(study):
        if numbers := [number for number, answers in every.items() if belongs(answers)]:
            yield QuestionList(page, title, about, numbers, runs)


def _filters(study: Study) -> Iterator[tuple[str, str, str, Callable[[_ByRun], bool], list[str]]]:
    """Yield for each list its page, its title, what is in it, the rule for its questions, and the runs it shows."""
    runs = list(study.runs)
    yield "failed.html", "Failed", "A program gave no answer.", partial(_any, "failed", True), runs
    said = "A mark stands at words that its passage does not support."
    yield "false-citations.html", "False citations", said, partial(_any, "cites_falsely", True), runs
    first, *others = runs
    for place, other in enumerate(others, start=2):
        for page, right, wrong in ((f"lost-{place}.html", first, other), (f"won-{place}.html", other, first)):
            misled = study.runs[wrong].retriever and not study.runs[right].retriever
            said = "Without retrieval the answer is right: retrieval misled the LM." if misled else ""
            yield page, f"{right} right, {wrong} not", said, partial(_wins, right, wrong), [right, wrong]
    every = (row for run in study.runs.values() for row in run.rows.values())
    for hops in sorted({row.hops for row in every if row.hops}):
        yield f"hops-{hops}.html", f"{hops} hops", "", partial(_any, "hops", hops), runs


def _any(field: str, value: object, answers: _ByRun) -> bool:
    """Return whether any of the answers has this value."""
    return any(getattr(one.row, field) == value for one in answers.values())


def _wins(right: str, wrong: str, answers: _ByRun) -> bool:
    both = {right, wrong} <= answers.keys()
    return both and answers[right].row.verdict == "right" and answers[wrong].row.verdict != "right"
