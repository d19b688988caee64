"""Runs as static pages that link to one another: the comparison, lists of questions, and how each was answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..evaluation.html import as_html
from ..evaluation.tracking import flat_params
from .asked_question import ShownAnswer
from .question_page import shown_answer
from .shown_runs import AnswerLine, ShownRuns
from .trees import aligned, reasoning

ROWS = 200
"""Questions on a page of a list, at most."""


class RunAnswer(NamedTuple):
    """What one run answered, the page that shows how, and the one that shows it beside the first run's."""

    run: str
    row: AnswerLine
    page: str
    beside: str


_ByRun = Mapping[str, RunAnswer]
"""The answers to a question, of the runs that have it."""


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
        stem = self.page.removesuffix(".html")
        return [self.page, *(f"{stem}-part-{n}.html" for n in range(2, -(-len(self.numbers) // ROWS) + 1))]


class Study:
    """Runs as pages by name, each made when it is asked for.

    Args:
        shown: the runs; the first is the one that the others are compared with.
        root: the way from a page to the place of ``static/``; a page at a server leads back to its other pages.
        mlflow: the address of MLflow's pages, for links to traces; empty if it is not known.

    Attributes:
        title: of the whole: the names of the first runs, since that of a folder may end in a digest.
        runs: by name.
        ids: of the questions of any run, in the order of their numbers.
        answers: to each question by its number, from 1.
    """

    def __init__(self, shown: ShownRuns, root: str = "", mlflow: str = ""):
        self._shown, self._root, self._mlflow = shown, root, mlflow
        self.runs = shown.runs
        more = f" and {len(self.runs) - 4} more" if len(self.runs) > 4 else ""
        self.title = ", ".join([*self.runs][:4]) + more
        self.ids = list(dict.fromkeys(id for run in self.runs.values() for id in run.rows))
        self.answers = {number: self._answers(number, id) for number, id in enumerate(self.ids, start=1)}
        self._lists = {one.page: one for one in _lists(self)}

    def names(self) -> Iterator[str]:
        """Yield the name of each page, the one to begin at first."""
        yield "index.html"
        for one in self._lists.values():
            yield from one.parts
        for answers in self.answers.values():
            yield from dict.fromkeys(page for one in answers.values() for page in (one.beside, one.page))

    def page(self, name: str) -> str | None:
        """Return the content of a page; None if there is none of this name."""
        if name == "index.html":
            return self._begin()
        if asked := re.match(r"question-(\d{1,9})[-.]", name):
            number = int(asked[1])
            return self._question(number, name) if number in self.answers else None
        return next((self._list(one, name) for one in self._lists.values() if name in one.parts), None)

    def _begin(self) -> str:
        """Return the comparison: its scores, its plots, and the questions that flipped."""
        flipped = next((one for page, one in self._lists.items() if page.startswith("flipped-")), None)
        listed = flipped or self._lists["questions.html"]
        shown: dict[str, Any] = {
            "title": self.title,
            "compared": self._shown.compared,
            "left_out": self._shown.left_out,
        }
        runs = list(self.runs.values())
        shown |= {"simulated": any(run.simulated for run in runs), "runs": runs}
        shown["self_written"] = any(run.self_written for run in runs)
        parameters = {name: list(flat_params(run.identity)) for name, run in self.runs.items()}
        return self._drawn("study.html", "index.html", parameters=parameters, **shown, **self._rows(listed))

    def _rows(self, one: QuestionList, part: int = 0) -> dict[str, Any]:
        numbers = one.numbers[part * ROWS : (part + 1) * ROWS]
        rows = [(number, self.answers[number]) for number in numbers]
        return {"lists": list(self._lists.values()), "listed": one, "rows": rows, "part": part}

    def _list(self, one: QuestionList, name: str) -> str:
        return self._drawn("question_list.html", name, **self._rows(one, one.parts.index(name)))

    def _question(self, number: int, name: str) -> str | None:
        """Return a page of a question: one run's answer, or two runs' side by side."""
        answers = [*self.answers[number].values()]
        for answer in answers:
            if name == answer.page:
                return self._answer(number, answer)
        for answer in answers[1:] or answers:
            if name == answer.beside:
                return self._pair(number, [answers[0], answer][: len(answers)])
        return None

    def _pair(self, number: int, pair: Sequence[RunAnswer]) -> str:
        records = [self._shown.record(answer.run, self.ids[number - 1]) for answer in pair]
        trees = [reasoning(one.tree) for one in records if one.tree]
        rows = aligned(trees[0], trees[1]) if len(trees) == 2 else []
        shown: dict[str, Any] = {"pair": list(zip(pair, records, strict=True)), "rows": rows, "trees": trees}
        others = [one for one in self.answers[number].values() if one not in pair]
        alike = len({str(self.runs[answer.run].identity.get("program")) for answer in pair}) < len(pair)
        shown["methods"] = "One method, twice" if alike else "Two methods"
        return self._drawn("pair.html", others=others, mlflow=self._mlflow, **shown, **self._around(number, pair[-1]))

    def _around(self, number: int, answer: RunAnswer) -> dict[str, Any]:
        """Return the list that a question is looked at in, and the pages before and after it there."""
        lists = [one for one in self._lists.values() if number in one.numbers and answer.run in one.runs]
        listed = next((one for one in lists if one.page.startswith("flipped-")), lists[0])
        place = listed.numbers.index(number)
        near = {"previous": place - 1, "next": place + 1}
        found = {way: listed.numbers[at] for way, at in near.items() if 0 <= at < len(listed.numbers)}
        pages = {way: self._page_of(at, answer.run) for way, at in found.items()}
        return {"listed": listed, "place": place + 1, "near": pages}

    def _page_of(self, number: int, run: str) -> str:
        answers = self.answers[number]
        return (answers.get(run) or next(iter(answers.values()))).beside

    def _answer(self, number: int, answer: RunAnswer) -> str:
        id = self.ids[number - 1]
        record = self._shown.record(answer.run, id)
        asked = ShownAnswer.of_prediction(record, simulated=self.runs[answer.run].simulated)
        steps = self._shown.asked(answer.run, id)
        answers = self.answers[number].values()
        shown: dict[str, Any] = {"answer": answer, "answers": answers, "record": record, "steps": steps}
        return self._drawn("answer.html", mlflow=self._mlflow, **shown, **shown_answer(asked))

    def _drawn(self, template: str, here: str = "", **values: Any) -> str:
        return as_html(template, root=self._root, here=here, **values)

    def _answers(self, number: int, id: str) -> _ByRun:
        found: dict[str, RunAnswer] = {}
        for place, (name, run) in enumerate(self.runs.items(), start=1):
            if id in run.rows:
                beside = f"question-{number}.html" if len(found) < 2 else f"question-{number}-with-{place}.html"
                found[name] = RunAnswer(name, run.rows[id], f"question-{number}-{place}.html", beside)
        return found


def _lists(study: Study) -> Iterator[QuestionList]:
    """Yield the lists that have a question in them, all questions first."""
    yield QuestionList("questions.html", "All questions", "", list(study.answers), list(study.runs))
    for page, title, about, belongs, runs in _filters(study):
        if numbers := [number for number, answers in study.answers.items() if belongs(answers)]:
            yield QuestionList(page, title, about, numbers, runs)


def _filters(study: Study) -> Iterator[tuple[str, str, str, Callable[[_ByRun], bool], list[str]]]:
    """Yield for each list its page, its title, what is in it, the rule for its questions, and the runs it shows."""
    runs = list(study.runs)
    first, *others = runs
    for place, other in enumerate(others, start=2):
        against, pair = f" ({other})" if len(others) > 1 else "", [first, other]
        misled = study.runs[other].retriever and not study.runs[first].retriever
        said = "Where the run without retrieval is right, retrieval misled the LM." if misled else ""
        yield f"flipped-{place}.html", f"Flipped{against}", said, partial(_flips, first, other), pair
        yield f"lost-{place}.html", f"{first} right, {other} not", said, partial(_wins, first, other), pair
        yield f"won-{place}.html", f"{other} right, {first} not", "", partial(_wins, other, first), pair
    yield "failed.html", "Failed", "A program gave no answer.", partial(_any, "failed", True), runs
    said = "A mark stands at words that its passage does not support."
    yield "false-citations.html", "Weak citation", said, partial(_any, "cites_falsely", True), runs
    every = (row for run in study.runs.values() for row in run.rows.values())
    for hops in sorted({row.hops for row in every if row.hops}):
        yield f"hops-{hops}.html", f"{hops} hop{'s' * (hops != 1)}", "", partial(_any, "hops", hops), runs


def _any(field: str, value: object, answers: _ByRun) -> bool:
    """Return whether any of the answers has this value."""
    return any(getattr(one.row, field) == value for one in answers.values())


def _wins(right: str, wrong: str, answers: _ByRun) -> bool:
    both = {right, wrong} <= answers.keys()
    return both and answers[right].row.verdict == "right" and answers[wrong].row.verdict != "right"


def _flips(one: str, other: str, answers: _ByRun) -> bool:
    return _wins(one, other, answers) or _wins(other, one, answers)
