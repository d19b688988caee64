"""Runs as static pages that link to one another: the comparison, lists of questions, and how each was answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from markupsafe import Markup

from ..common.errors import QuestreeError
from ..evaluation.capsule.sources import ShownRun as ShownRun
from ..evaluation.comparison.page import plots_of
from ..evaluation.comparison.result import Comparison
from ..evaluation.evaluation import Evaluation
from ..evaluation.records import Record
from ..evaluation.run_folder import StoredRun
from ..programs import ReasoningTree
from ..programs.tree_views import node_view
from .asked_question import AnsweredQuestion
from .html import as_html
from .question_page import shown_answer
from .steps import Step, step
from .trees import cards

RIGHT = 1.0
"""The score from which an answer counts as right, as in `questree analyse misled`."""

ROWS = 200
"""Questions on a page of a list."""


class Verdict(NamedTuple):
    """What an answer is worth in a word, and the class that it is drawn with."""

    word: str
    style: str


class Answer(NamedTuple):
    """What one run answered, and the page that shows how."""

    run: str
    record: Record
    verdict: Verdict
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
        """Return the names of its pages: `ROWS` questions stand on each."""
        stem = self.page.removesuffix(".html")
        return [self.page, *(f"{stem}-part-{n}.html" for n in range(2, -(-len(self.numbers) // ROWS) + 1))]


class Study:
    """Runs as pages by name, each made when it is asked for.

    Args:
        title: of the whole.
        runs: with unique names; the first is the one that the others are compared with.
        root: the way from a page to the place of ``static/``; a page at a server leads back to its other pages.
    """

    def __init__(self, title: str, runs: Sequence[ShownRun], root: str = ""):
        self.title, self._root = title, root
        self.runs = {one.run.name: one.run for one in runs}
        self.asked = {one.run.name: one.asked for one in runs}
        self.records = {one.run.name: {record.id: record for record in one.run.records} for one in runs}
        self.ids = list(dict.fromkeys(id for records in self.records.values() for id in records))
        self._lists = {one.page: one for one in _lists(self)}

    def names(self) -> Iterator[str]:
        """Yield the name of each page, the one to begin at first."""
        yield "index.html"
        for one in self._lists.values():
            yield from one.parts
        for number in self.numbers:
            yield f"question-{number}.html"
            yield from (answer.page for answer in self.answers(number))

    def page(self, name: str) -> str | None:
        """Return the content of a page; None if there is none of this name.

        Raises:
            QuestreeError: a reasoning tree is too deep to be drawn.
        """
        if name == "index.html":
            return self._index
        if asked := re.fullmatch(r"question-(\d{1,9})(-\d{1,9})?\.html", name):
            number = int(asked[1])
            return self._question(number, name) if number in self.numbers else None
        return next((self._list(one, name) for one in self._lists.values() if name in one.parts), None)

    @cached_property
    def _index(self) -> str:
        compared = [(one, [(name, Markup(svg)) for name, svg in plots_of(one)]) for one in self.groups()]
        simulated = any(run.simulated for run in self.runs.values())
        shown: dict[str, Any] = {"title": self.title, "compared": compared, "simulated": simulated}
        return self._drawn(
            "study.html", "index.html", lists=list(self._lists.values()), runs=self.runs.values(), **shown
        )

    def _list(self, one: QuestionList, name: str) -> str:
        part = one.parts.index(name)
        rows = [(number, self.answers(number)) for number in one.numbers[part * ROWS : (part + 1) * ROWS]]
        shown: dict[str, Any] = {"lists": list(self._lists.values()), "listed": one, "rows": rows, "part": part}
        return self._drawn("question_list.html", name, **shown)

    def _question(self, number: int, name: str) -> str | None:
        answers = self.answers(number)
        trees = {answer.run: cards(answer.record.tree) if answer.record.tree else [] for answer in answers}
        shown: dict[str, Any] = {"number": number, "record": answers[0].record, "answers": answers}
        if name == f"question-{number}.html":
            return self._drawn("answers.html", trees=trees, differs=_differing(answers), **shown)
        for answer in answers:
            if answer.page == name:
                asked = _answered(answer.record, self.runs[answer.run].simulated)
                shown |= {"answer": answer, "cards": trees[answer.run], "steps": self.steps(answer)}
                return self._drawn("answer.html", **shown, **shown_answer(asked))
        return None

    def _drawn(self, template: str, here: str = "", **values: Any) -> str:
        try:
            return as_html(template, root=self._root, here=here, **values)
        except RecursionError:
            raise QuestreeError(f"A reasoning tree of {self.title} is too deep to be drawn.") from None

    @property
    def numbers(self) -> range:
        """Return the numbers of the questions."""
        return range(1, len(self.ids) + 1)

    def answers(self, number: int) -> list[Answer]:
        """Return what each run answered to a question; nothing of a run that does not have it."""
        id = self.ids[number - 1]
        return [
            Answer(name, records[id], _verdict(records[id], self.runs[name]), f"question-{number}-{place}.html")
            for place, (name, records) in enumerate(self.records.items(), start=1)
            if id in records
        ]

    def steps(self, answer: Answer) -> list[Step]:
        """Return what was asked for an answer, in the order of the program."""
        asked = self.asked[answer.run].get(answer.record.id, [])
        return [step(number, one) for number, one in enumerate(asked, start=1)]

    def searches(self, name: str) -> bool:
        """Return whether a run has a retriever."""
        return bool(self.runs[name].identity.get("retriever"))

    def groups(self) -> list[Comparison]:
        """Return a comparison of each group of runs with the same questions and the same metric."""
        groups: dict[Any, list[StoredRun]] = {}
        for run in self.runs.values():
            groups.setdefault((run.metric, frozenset(record.id for record in run.records)), []).append(run)
        return [self._comparison(runs) for runs in groups.values()]

    def _comparison(self, runs: Sequence[StoredRun]) -> Comparison:
        evaluations = {}
        for run in runs:
            records = tuple(self.records[run.name][id] for id in self.ids if id in self.records[run.name])
            evaluations[run.name] = Evaluation(run.metric, records, run.simulated)
        return Comparison(
            evaluations,
            self.title,
            _joined(str(run.identity.get("task") or "") for run in runs),
            _joined(str(run.identity.get("lm", {}).get("name", "")) for run in runs),
            _joined(str((run.identity.get("retriever") or {}).get("name", "")) for run in runs),
        )


def _differing(answers: Sequence[Answer]) -> dict[str, set[int]]:
    """Return for each run the ids of the nodes that the first one's tree lacks; for the first, that all others lack."""
    said = {one.run: [node_view(node) for node in one.record.tree.nodes] if one.record.tree else [] for one in answers}
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
    yield "failed.html", "Failed", "A program gave no answer.", _is_failed, runs
    said = "A mark stands at words that its passage does not support."
    yield "false-citations.html", "False citations", said, _cites_falsely, runs
    first, *others = runs
    for place, other in enumerate(others, start=2):
        for page, right, wrong in ((f"lost-{place}.html", first, other), (f"won-{place}.html", other, first)):
            misled = study.searches(wrong) and not study.searches(right)
            said = "Without retrieval the answer is right: retrieval misled the LM." if misled else ""
            yield page, f"{right} right, {wrong} not", said, partial(_wins, right, wrong), [right, wrong]
    every = (record for records in study.records.values() for record in records.values())
    for hops in sorted({record.hops for record in every if record.hops}):
        yield f"hops-{hops}.html", f"{hops} hops", "", partial(_has_hops, hops), runs


def _is_failed(answers: _ByRun) -> bool:
    return any(one.record.failure for one in answers.values())


def _cites_falsely(answers: _ByRun) -> bool:
    return any(_answered(one.record).cites_falsely() for one in answers.values())


def _wins(right: str, wrong: str, answers: _ByRun) -> bool:
    both = {right, wrong} <= answers.keys()
    return both and answers[right].verdict.word == "right" and answers[wrong].verdict.word != "right"


def _has_hops(hops: int, answers: _ByRun) -> bool:
    return any(one.record.hops == hops for one in answers.values())


def _verdict(record: Record, run: StoredRun) -> Verdict:
    if record.failure is not None:
        return Verdict(f"failed: {record.failure.cause}", "warn")
    score = record.scores.get(run.metric)
    if score is None:
        return Verdict("not scored", "quiet")
    if score >= RIGHT:
        return Verdict("right", "good")
    return Verdict("wrong", "bad") if score == 0 else Verdict(f"{score:.2f}", "warn")


def _answered(record: Record, simulated: bool = False) -> AnsweredQuestion:
    """Return a record as the page of a question draws it."""
    return AnsweredQuestion(
        tree=record.tree or ReasoningTree(question=record.question),
        state="answered" if record.failure is None else "failed",
        spent=record.spent,
        seconds=record.seconds,
        answer=record.answer,
        final_content=record.final_content,
        references=list(record.references),
        failure=record.failure,
        simulated=simulated,
    )


def _joined(names: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name))
