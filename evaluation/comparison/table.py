"""A comparison as a table: for the terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...metrics import Interval
from ..evaluation import Evaluation
from .published import Published, published

if TYPE_CHECKING:
    from .comparison import Comparison

SIMULATED = "simulated LM: these numbers say nothing about methods"
PAPERS = "The papers' own figures, with the papers' models and corpora: not measured here."


@dataclass(frozen=True)
class Row:
    """One program of a comparison. Counts are of a question, on average; ``cost`` and ``failures`` are of all.

    Attributes:
        difference: to the first program, paired; None for the first itself.
        others: the task's other metrics.
        retrieval: what was found, by name (`records.retrieval_scores`); empty where nothing was retrieved.
        cost: US dollars; 0 where the client does not know the model's price.
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


def rows(comparison: Comparison) -> list[Row]:
    """One row for each program, in the order of the comparison."""
    return [
        _row(name, evaluation, comparison.difference(name) if place else None)
        for place, (name, evaluation) in enumerate(comparison.evaluations.items())
    ]


def told(comparison: Comparison) -> list[dict[str, str]]:
    """The rows as people read them: texts by heading."""
    return [_told(row, comparison) for row in comparison.rows]


def beside(comparison: Comparison) -> list[dict[str, str]]:
    """The papers' figures for these programs on this task, with ours where the same metric was taken; in percent."""
    measured = {row.name: row for row in comparison.rows}
    ours = "ours (simulated)" if comparison.simulated else f"ours, {comparison.lm}"
    return [
        {
            "program": name,
            "metric": figure.metric,
            "paper's": f"{figure.percent:.1f}",
            ours: _ours(measured[name], comparison.metric, figure),
            "paper's model": figure.model,
            "paper's retriever": figure.retriever or "none",
            "source": figure.source,
        }
        for name, method in comparison.methods.items()
        for figure in published(comparison.task, {method})
    ]


def as_markdown(comparison: Comparison) -> str:
    """The table, what it rests on, and the papers' figures under it."""
    parts = [f"# {comparison.title}", _facts(comparison), as_markdown_table(told(comparison))]
    papers = beside(comparison)
    if papers:
        parts += [f"## What the papers report (%)\n\n{PAPERS}", as_markdown_table(papers)]
    return "\n\n".join(parts) + "\n"


def as_csv(comparison: Comparison) -> str:
    """One line for each program, every number by itself; says in each line whether the LM was simulated."""
    lines = [_flat(row) | {"simulated": comparison.simulated} for row in comparison.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for line in lines for key in line)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def as_json(comparison: Comparison) -> str:
    """What was compared, and every number of it."""
    facts = {
        "title": comparison.title,
        "task": comparison.task,
        "lm": comparison.lm,
        "simulated": comparison.simulated,
        "retriever": comparison.retriever,
        "metric": comparison.metric,
        "stopped": comparison.stopped,
    }
    return json.dumps(
        {**facts, "programs": [_flat(row) for row in comparison.rows], "papers": beside(comparison)},
        ensure_ascii=False,
        indent=2,
    )


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


def _told(row: Row, comparison: Comparison) -> dict[str, str]:
    first = next(iter(comparison.evaluations))
    failed = ", ".join(f"{count} {cause}" for cause, count in row.failures.items())
    return {
        "program": row.name,
        comparison.metric: f"{row.score.mean:.3f} [{row.score.low:.3f}, {row.score.high:.3f}]",
        f"difference to {first}": "" if row.difference is None else signed(row.difference),
        **{metric: f"{interval.mean:.3f}" for metric, interval in row.others.items()},
        "recall": _figure(row.retrieval.get("recall")),
        "failed": failed or "0",
        "LM calls": f"{row.calls:.1f}",
        "words in": f"{row.words_in:.0f}",
        "words out": f"{row.words_out:.0f}",
        "rounds": f"{row.rounds:.2f}",
        "seconds": f"{row.seconds:.2f}",
        "cost": f"${row.cost:.2f}" if row.cost else "–",
        **{name: _figure(row.retrieval.get(name)) for name in further_retrieval(comparison)},
    }


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def further_retrieval(comparison: Comparison) -> list[str]:
    """What any of the programs has a figure of, beside recall."""
    return list(dict.fromkeys(name for row in comparison.rows for name in row.retrieval if name != "recall"))


def signed(interval: Interval) -> str:
    """A difference with its interval."""
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {"program": row.name, "questions": row.questions, **_ends("score", row.score)}
    if row.difference is not None:
        flat |= _ends("difference", row.difference)
    for metric, interval in row.others.items():
        flat |= _ends(metric, interval)
    counts = {name: getattr(row, name) for name in ("calls", "words_in", "words_out", "rounds", "seconds", "cost")}
    causes = {f"failed_{cause}": count for cause, count in row.failures.items()}
    return flat | {**row.retrieval, "failed": sum(row.failures.values())} | causes | counts


def _ends(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _ours(row: Row, metric: str, figure: Published) -> str:
    interval = row.score if figure.metric == metric else row.others.get(figure.metric)
    return "–" if interval is None else f"{100 * interval.mean:.1f}"


def _facts(comparison: Comparison) -> str:
    said = f"**{SIMULATED}**\n\n" if comparison.simulated else ""
    stopped = f"\n\n{comparison.stopped}" if comparison.stopped else ""
    return said + " · ".join(comparison.facts) + f"\n\n{comparison.how_to_read}{stopped}"


def as_markdown_table(lines: list[dict[str, str]]) -> str:
    """Texts by heading as a Markdown table."""
    headings = list(lines[0])
    body = [headings, ["---"] * len(headings), *([line[heading] for heading in headings] for line in lines)]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in body)
