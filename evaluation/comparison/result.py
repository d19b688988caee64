"""What a comparison found: a row for each program, and the papers' figures beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...metrics import Interval, paired_interval
from ..evaluation import Evaluation
from ..tables import Table, flat, markdown_of
from .published import published

PAPERS = "The papers' own figures, with the papers' models and corpora: not measured here."


@dataclass(frozen=True)
class Row:
    """One program of a comparison. Counts are means of a question; ``cost`` and ``failures`` are of all questions.

    Attributes:
        difference: to the first program, paired; None for the first itself.
        others: the task's other metrics.
        retrieval: what was found, by name (`records.retrieval_scores`); empty if nothing was retrieved.
        cost: US dollars; 0 if the client does not know the model's price.
    """

    name: str
    questions: int
    score: Interval
    difference: Interval | None
    others: Mapping[str, Interval]
    retrieval: Mapping[str, float]
    failures: Mapping[str, int]
    calls: float
    words_in: float
    words_out: float
    rounds: float
    seconds: float
    cost: float


@dataclass(frozen=True)
class Comparison:
    """Evaluations over the same questions, by the name of the program; the others are compared with the first.

    Attributes:
        title: what was done.
        task, lm, retriever: by name; the retriever's is empty if no program has one.
        methods: the registered names of the programs that have the default settings of their kind.
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

    @cached_property
    def rows(self) -> list[Row]:
        """Return a row for each program, in the order of the evaluations."""
        return [
            _row(name, evaluation, self.difference(name) if place else None)
            for place, (name, evaluation) in enumerate(self.evaluations.items())
        ]

    def difference(self, name: str) -> Interval:
        """Return by how much ``name`` scores more than the first, question by question, with its 95% interval."""
        first, other = self._first, self.evaluations[name]
        scores = ([record.scores[first.metric] for record in one.records] for one in (first, other))
        return paired_interval(*scores, seed=first.seed)

    @cached_property
    def table(self) -> Table:
        """Return the rows as a table."""
        facts = {"task": self.task, "questions": str(self._first.n), "LM": self.lm, "retriever": self.retriever}
        note = (
            f"Intervals hold 95% of means over resampled questions (n={self._first.n}); differences are paired, "
            "question by question. A failed question earns nothing and is counted apart. Calls, words, rounds and "
            "seconds are of a question, cost is of all; what the client's cache answered is free, and counts as a call."
        )
        return Table(
            title=self.title,
            facts=[f"{what}: {fact}" for what, fact in facts.items() if fact],
            note=note,
            lines=[self._line(row) for row in self.rows],
            numbers=[_numbers(row) for row in self.rows],
            simulated=self.simulated,
        )

    @cached_property
    def papers(self) -> list[dict[str, str]]:
        """Return the papers' figures for these programs on this task beside ours of the same metric, in percent."""
        measured = {row.name: row for row in self.rows}
        ours = "ours (simulated)" if self.simulated else f"ours, {self.lm}"
        return [
            {
                "program": name,
                "metric": figure.metric,
                "paper's": f"{figure.percent:.1f}",
                ours: self._percent(measured[name], figure.metric),
                "paper's model": figure.model,
                "paper's retriever": figure.retriever or "none",
                "source": figure.source,
            }
            for name, method in self.methods.items()
            for figure in published(self.task, {method})
        ]

    def as_markdown(self) -> str:
        """Return the table, what it rests on, and the papers' figures below it."""
        note = f"{self.table.note}\n\n{self.stopped}" if self.stopped else self.table.note
        text = replace(self.table, note=note).as_markdown()
        papers = f"\n## What the papers report (%)\n\n{PAPERS}\n\n{markdown_of(self.papers)}\n" if self.papers else ""
        return text + papers

    def as_json(self) -> str:
        """Return what was compared, and every number of it."""
        facts = {
            "title": self.title,
            "task": self.task,
            "lm": self.lm,
            "simulated": self.simulated,
            "retriever": self.retriever,
            "metric": self.metric,
            "stopped": self.stopped,
        }
        content = {**facts, "programs": self.table.numbers, "papers": self.papers}
        return json.dumps(content, ensure_ascii=False, indent=2)

    @property
    def _first(self) -> Evaluation:
        return next(iter(self.evaluations.values()))

    def _line(self, row: Row) -> dict[str, str]:
        first = next(iter(self.evaluations))
        further = dict.fromkeys(name for one in self.rows for name in one.retrieval if name != "recall")
        failed = ", ".join(f"{count} {cause}" for cause, count in row.failures.items())
        return {
            "program": row.name,
            self.metric: f"{row.score.mean:.3f} [{row.score.low:.3f}, {row.score.high:.3f}]",
            f"difference to {first}": "" if row.difference is None else _signed(row.difference),
            **{metric: f"{interval.mean:.3f}" for metric, interval in row.others.items()},
            "recall": _figure(row.retrieval.get("recall")),
            "failed": failed or "0",
            "LM calls": f"{row.calls:.1f}",
            "words in": f"{row.words_in:.0f}",
            "words out": f"{row.words_out:.0f}",
            "rounds": f"{row.rounds:.2f}",
            "seconds": f"{row.seconds:.2f}",
            "cost": f"${row.cost:.2f}" if row.cost else "–",
            **{name: _figure(row.retrieval.get(name)) for name in further},
        }

    def _percent(self, row: Row, metric: str) -> str:
        interval = row.score if metric == self.metric else row.others.get(metric)
        return "–" if interval is None else f"{100 * interval.mean:.1f}"


def _row(name: str, evaluation: Evaluation, difference: Interval | None) -> Row:
    spent, n = evaluation.spent, evaluation.n
    found_any = any(record.passages for record in evaluation.records)
    others = [metric for metric in evaluation.records[0].scores if metric != evaluation.metric]
    return Row(
        name=name,
        questions=n,
        score=evaluation.score,
        difference=difference,
        others={metric: evaluation.score_of(metric) for metric in others},
        retrieval=evaluation.retrieval if found_any else {},
        failures=evaluation.failures,
        calls=spent.calls / n,
        words_in=spent.words_in / n,
        words_out=spent.words_out / n,
        rounds=evaluation.rounds,
        seconds=evaluation.seconds,
        cost=spent.cost,
    )


def _numbers(row: Row) -> dict[str, object]:
    """Return every number of a row; what is none is left out."""
    difference = {} if row.difference is None else {"difference": row.difference}
    scores = {"program": row.name, "questions": row.questions, "score": row.score, **difference, **row.others}
    causes = {f"failed_{cause}": count for cause, count in row.failures.items()}
    counts = {name: getattr(row, name) for name in ("calls", "words_in", "words_out", "rounds", "seconds", "cost")}
    return flat({**scores, **row.retrieval, "failed": sum(row.failures.values()), **causes, **counts})


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(interval: Interval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
