"""The result of a comparison: a row for each program, and the papers' figures beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ...common.text import in_page
from ...metrics import Interval, holm
from ..evaluation import ANSWERED, FAILURES, Evaluation, cost_of, of_how_many
from ..records import Record
from ..tables import Table, flat, html_of, markdown_of, warning_of
from .published import published

PAPERS = "The papers' own figures, with the papers' models and corpora: not measured here."


@dataclass(frozen=True)
class Comparison:
    """Evaluations over the same questions, by the name of the program; the others are compared with the first.

    Attributes:
        title: what was done.
        task, lm, retriever: by name; the retriever's is empty if no program has one.
        methods: the registered names of the programs that stand for a paper's method: with the paper's preset, or where
            none of a kind has it, with its defaults.
        stopped: why there are fewer evaluations than programs; None if all were made.
    """

    evaluations: Mapping[str, Evaluation]
    title: str = "compare"
    task: str = ""
    lm: str = ""
    retriever: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None

    @property
    def metric(self) -> str:
        """Return the metric that the programs are compared by."""
        return self._first.metric

    @property
    def simulated(self) -> bool:
        """Return whether any of it was made with the simulated LM."""
        return any(evaluation.simulated for evaluation in self.evaluations.values())

    @property
    def warning(self) -> str:
        """Return the warning to show above the scores of all programs."""
        return warning_of(self.simulated, self.self_written)

    @property
    def self_written(self) -> bool:
        """Return whether an LM answered questions that it wrote."""
        return any(evaluation.self_written for evaluation in self.evaluations.values())

    def difference(self, name: str) -> Interval:
        """Return by how much ``name`` scores more than the first, question by question, with its 95% interval."""
        return self.evaluations[name].less(self._first)

    def won_and_lost(self, name: str) -> tuple[int, int]:
        """Return how many questions only ``name`` answers right, and how many only the first program."""
        pairs = zip(self.evaluations[name].records, self._first.records, strict=True)
        flipped = [self._is_right(own) for own, first in pairs if self._is_right(own) != self._is_right(first)]
        return sum(flipped), len(flipped) - sum(flipped)

    @cached_property
    def flipped(self) -> list[list[tuple[Record, bool]]]:
        """Return the questions that only some programs answer right: each program's record, and whether it is right."""
        asked = zip(*(evaluation.records for evaluation in self.evaluations.values()), strict=True)
        outcomes = [[(record, self._is_right(record)) for record in records] for records in asked]
        return [outcome for outcome in outcomes if len({right for _, right in outcome}) > 1]

    def _is_right(self, record: Record) -> bool:
        return record.failure is None and record.scores[self.metric] >= 1

    @cached_property
    def table(self) -> Table:
        """Return the rows as a table."""
        facts = {"task": self.task, "questions": str(self._first.n), "LM": self.lm, "retriever": self.retriever}
        adjusted = f", adjusted for {len(self._p_values)} comparisons (Holm)" if len(self._p_values) > 1 else ""
        p_rule = f"p is of McNemar's test (mid-p){adjusted}. " if self._p_values else ""
        note = (
            f"95% intervals over {self._first.n} questions: Wilson's of a share of right answers, Newcombe's of the "
            f"difference of two, else a bootstrap's. Differences are paired, question by question. {p_rule}"
            f"{FAILURES} {_recall_rule(self._found)}Calls, "
            "words, rounds and seconds are of a question, cost is of all. What the client's cache answered counts as a "
            "call and is free: where it answered some, no cost is given."
        )
        return Table(
            title=self.title,
            facts=[f"{what}: {fact}" for what, fact in facts.items() if fact],
            note=note,
            lines=[self._line(name) for name in self.evaluations],
            details=[self._details(name) for name in self.evaluations],
            numbers=[self._numbers(name) for name in self.evaluations],
            simulated=self.simulated,
            self_written=self.self_written,
        )

    @cached_property
    def papers(self) -> list[dict[str, str]]:
        """Return the papers' figures for these programs on this task beside ours of the same metric, in percent."""
        ours = "ours (simulated)" if self.simulated else f"ours, {self.lm}"
        return [
            {
                "program": name,
                "metric": figure.metric,
                "paper's": f"{figure.percent:.1f}",
                ours: f"{100 * own.mean:.1f}" if (own := self.evaluations[name].scores.get(figure.metric)) else "–",
                "paper's model": figure.model,
                "paper's retriever": figure.retriever or "none",
                "source": figure.source,
            }
            for name, method in self.methods.items()
            for figure in published(self.task, {method})
        ]

    def as_markdown(self) -> str:
        """Return the table with the facts about it, and the papers' figures below it."""
        note = f"{self.table.note}\n\n{self.stopped}" if self.stopped else self.table.note
        text = replace(self.table, note=note).as_markdown()
        papers = f"\n## What the papers report (%)\n\n{PAPERS}\n\n{markdown_of(self.papers)}\n" if self.papers else ""
        return text + papers

    def as_json(self) -> str:
        """Return what was compared, and every number of it."""
        names = ("title", "task", "lm", "simulated", "warning", "retriever", "metric", "stopped")
        facts = {name: getattr(self, name) for name in names}
        content = {**facts, "programs": self.table.numbers, "papers": self.papers}
        return json.dumps(content, ensure_ascii=False, indent=2)

    def _repr_html_(self) -> str:
        """Return the table as a notebook shows it; everything in it is escaped."""
        said = [one for one in (self.title, self.warning, self.stopped) if one]
        return "".join(f"<p>{in_page(line)}</p>" for line in said) + html_of(self.table.lines)

    @property
    def _first(self) -> Evaluation:
        return next(iter(self.evaluations.values()))

    @cached_property
    def _differences(self) -> dict[str, Interval]:
        """Return the difference of each program but the first, by name."""
        return {name: self.difference(name) for name in list(self.evaluations)[1:]}

    @cached_property
    def _p_values(self) -> dict[str, float]:
        """Return the adjusted p-value of each difference, by name; none if the metric is not 0 or 1."""
        found = {name: one.p(self._first) for name, one in list(self.evaluations.items())[1:]}
        known = {name: p for name, p in found.items() if p is not None}
        return holm(known) if len(known) == len(found) else {}

    def _line(self, name: str) -> dict[str, str]:
        """Return the row of a program as people read it: its scores, retrieval and cost."""
        one, difference, p = self.evaluations[name], self._differences.get(name), self._p_values.get(name)
        spent, any_failed = one.spent, any(evaluation.failures for evaluation in self.evaluations.values())
        return {
            "program": name,
            self.metric: f"{one.score:.3f}",
            **({ANSWERED: f"{one.answered:.3f}" if one.answered else "–"} if any_failed else {}),
            "grounded": f"{one.grounded.mean:.3f}",
            f"difference to {next(iter(self.evaluations))}": f"{difference:+.3f}" if difference else "",
            **({"p": "" if p is None else "<.001" if p < 0.001 else f"{p:.3f}"} if self._p_values else {}),
            **{name: str(rate) for name, rate in one.rates.items()},
            **{metric: _figure(one, metric) for metric in self._others},
            **{figure: _figure(one, figure) for figure in self._found if _is_main(figure)},
            "failed": ", ".join(f"{count} {cause}" for cause, count in one.failures.items()) or "0",
            "LM calls": f"{spent.calls / one.n:.1f}",
            "cost": cost_of(spent),
        }

    def _details(self, name: str) -> dict[str, str]:
        """Return the rest of what was measured of a program, as people read it."""
        one, spent = self.evaluations[name], self.evaluations[name].spent
        return {
            "program": name,
            "words in": f"{spent.words_in / one.n:.0f}",
            "words out": f"{spent.words_out / one.n:.0f}",
            "rounds": f"{one.rounds:.2f}",
            "seconds": f"{one.seconds:.2f}",
            **{figure: _figure(one, figure) for figure in self._found if not _is_main(figure)},
        }

    @cached_property
    def _others(self) -> list[str]:
        """Return the names of the metrics but the first; one that asks an LM may have scored no answer of a program."""
        return list(dict.fromkeys(name for one in self.evaluations.values() for name in one.others))

    @cached_property
    def _found(self) -> list[str]:
        """Return the names of the retrieval measures that any program has."""
        return list(dict.fromkeys(name for one in self.evaluations.values() for name in one.retrieval))

    def _numbers(self, name: str) -> dict[str, Any]:
        """Return every number of a program."""
        one, difference, spent = self.evaluations[name], self._differences.get(name), self.evaluations[name].spent
        return flat(
            {
                "program": name,
                "questions": one.n,
                "score": one.score,
                "grounded": one.grounded,
                **({"answered": one.answered} if one.answered else {}),
                **({"difference": difference} if difference else {}),
                **({"p": self._p_values[name]} if name in self._p_values else {}),
                **one.rates,
                **one.others,
                **one.retrieval,
                "failed": sum(one.failures.values()),
                **{f"failed_{cause}": count for cause, count in one.failures.items()},
                "calls": spent.calls / one.n,
                "words_in": spent.words_in / one.n,
                "words_out": spent.words_out / one.n,
                "rounds": one.rounds,
                "seconds": one.seconds,
                "cached": spent.cached / one.n,
                "cost": None if spent.cached else spent.cost,
            }
        )


def _figure(evaluation: Evaluation, name: str) -> str:
    score = evaluation.scores.get(name)
    value = score.mean if score else evaluation.retrieval.get(name)
    return "–" if value is None else f"{value:.3f}{of_how_many(evaluation, name)}"


def _is_main(figure: str) -> bool:
    return figure.endswith("recall@5")


def _recall_rule(found: Sequence[str]) -> str:
    """Return how the recall in a table was measured; empty if there is none."""
    if not any(map(_is_main, found)):
        return ""
    titled = "Where a question does not tell its gold passages, a title stands for them. "
    rule = "Recall is of the passages that a program saw, in one order for all programs. "
    return rule + titled if any(name.startswith("title ") for name in found) else rule
