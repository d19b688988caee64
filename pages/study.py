"""Runs as static pages that link to one another: the comparison, lists of questions, and how each was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup

from ..evaluation.comparison.page import plots_of
from ..evaluation.comparison.result import Comparison
from ..evaluation.evaluation import Evaluation
from ..evaluation.records import Record
from ..evaluation.run_folder import StoredRun
from ..lm.exchanges import Exchange
from ..programs import ReasoningTree
from .asked_question import AnsweredQuestion
from .html import as_html
from .question_page import shown_answer
from .steps import Step, step
from .trees import cards

RIGHT = 1.0
"""The score from which an answer counts as right, as in `questree analyse misled`."""


class ShownRun(NamedTuple):
    """A run, and what was asked for each of its questions outside the program; empty where that was not kept."""

    run: StoredRun
    asked: Mapping[str, Sequence[Exchange]]


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


def study_pages(title: str, runs: Sequence[ShownRun]) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each page.

    Args:
        title: of the whole.
        runs: with unique names; the first is the one that the others are compared with.
    """
    study = _Study(title, runs)
    lists = list(_lists(study))
    compared = [(one, [(name, Markup(svg)) for name, svg in plots_of(one)]) for one in study.groups()]
    shown: dict[str, Any] = {"runs": study.runs.values(), "simulated": any(one.run.simulated for one in runs)}
    yield "index.html", _page("study.html", "index.html", title=title, lists=lists, compared=compared, **shown)
    for one in lists:
        rows = [(number, study.answers(number)) for number in one.numbers]
        yield one.page, _page("question_list.html", one.page, lists=lists, listed=one, rows=rows)
    for number in study.numbers:
        answers = study.answers(number)
        trees = {answer.run: cards(answer.record.tree) if answer.record.tree else [] for answer in answers}
        shown = {"number": number, "record": answers[0].record, "answers": answers}
        yield f"question-{number}.html", _page("answers.html", trees=trees, **shown)
        for answer in answers:
            asked = _answered(answer.record, study.runs[answer.run].simulated)
            made = {"asked": asked, "cards": trees[answer.run], "steps": study.steps(answer), **shown_answer(asked)}
            yield answer.page, _page("answer.html", answer=answer, **made, **shown)


def _page(template: str, here: str = "", **values: Any) -> str:
    return as_html(template, root="", here=here, **values)


class _Study:
    """The runs, and their questions by number."""

    def __init__(self, title: str, runs: Sequence[ShownRun]):
        self.title = title
        self.runs = {one.run.name: one.run for one in runs}
        self.asked = {one.run.name: one.asked for one in runs}
        self.records = {one.run.name: {record.id: record for record in one.run.records} for one in runs}
        self.ids = list(dict.fromkeys(id for records in self.records.values() for id in records))

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


def _lists(study: _Study) -> Iterator[QuestionList]:
    """Yield the lists that have a question in them, all questions first."""
    every = {number: {one.run: one for one in study.answers(number)} for number in study.numbers}
    yield QuestionList("questions.html", "All questions", "", list(every), list(study.runs))
    for page, title, about, belongs, runs in _filters(study):
        if numbers := [number for number, answers in every.items() if belongs(answers)]:
            yield QuestionList(page, title, about, numbers, runs)


def _filters(study: _Study) -> Iterator[tuple[str, str, str, Callable[[_ByRun], bool], list[str]]]:
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
    return any(cited.weak for one in answers.values() for cited in _answered(one.record).citations())


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
