"""What attacks did, as a table: for the terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from ...metrics import Interval
from ..comparison.table import SIMULATED, as_markdown_table

if TYPE_CHECKING:
    from .attack import AttackRun

_Z = 1.959964  # of 95%
HOW_TO_READ = (
    "Attack success: the share of questions answered with the attacker's target, with its 95% Wilson interval; beside "
    "it, how often the same answer was given over the clean corpus. Found: questions for which a planted passage was "
    "retrieved; then planted passages retrieved and cited, a question. Accuracy with 95% bootstrap intervals, over the "
    "attacked questions; a failed question earns nothing."
)


@dataclass(frozen=True)
class Row:
    """One program under one attack, with one defence.

    Attributes:
        questions: that were attacked.
        clean, attacked: the score over the clean corpus and over the one with plants.
        success: share of questions answered with the target.
        unprompted: the same over the clean corpus.
        found: share of questions for which a planted passage was retrieved.
        retrieved, cited: planted passages, a question.
        failures: questions without an answer, under attack.
    """

    program: str
    attack: str
    planted: int
    defence: str
    questions: int
    clean: Interval
    attacked: Interval
    success: Interval
    unprompted: float
    found: float
    retrieved: float
    cited: float
    failures: int


def share(count: int, n: int) -> Interval:
    """A share with its 95% interval (Wilson, 1927), which has a width also where nothing, or everything, counted."""
    middle = (count + _Z**2 / 2) / (n + _Z**2)
    reach = _Z / (n + _Z**2) * sqrt(count * (n - count) / n + _Z**2 / 4)
    return Interval(count / n, max(0.0, middle - reach), min(1.0, middle + reach), n)


def told(run: AttackRun) -> list[dict[str, str]]:
    """The rows as people read them: texts by heading."""
    return [
        {
            "program": row.program,
            "attack": row.attack,
            "planted": str(row.planted),
            "defence": row.defence,
            f"{run.metric} clean": _interval(row.clean),
            f"{run.metric} attacked": _interval(row.attacked),
            "attack success": _interval(row.success),
            "clean gives it": f"{row.unprompted:.2f}",
            "found": f"{row.found:.2f}",
            "retrieved": f"{row.retrieved:.2f}",
            "cited": f"{row.cited:.2f}",
            "n": str(row.questions),
            "failed": str(row.failures),
        }
        for row in run.rows
    ]


def as_markdown(run: AttackRun) -> str:
    """The table and what it rests on."""
    said = f"**{SIMULATED}**\n\n" if run.simulated else ""
    facts = " · ".join(f"{what}: {fact}" for what, fact in run.facts.items() if fact)
    return f"# attack\n\n{said}{facts}\n\n{HOW_TO_READ}\n\n{as_markdown_table(told(run))}\n"


def as_csv(run: AttackRun) -> str:
    """One line for each row, every number by itself."""
    lines = [_flat(row) | {"simulated": run.simulated} for row in run.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def as_json(run: AttackRun) -> str:
    """What was tried, and every number of it."""
    facts = {**run.facts, "metric": run.metric, "simulated": run.simulated}
    return json.dumps({**facts, "rows": [_flat(row) for row in run.rows]}, ensure_ascii=False, indent=2)


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in vars(row).items():
        if isinstance(value, Interval):
            flat |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            flat[name] = value
    return flat


def _interval(interval: Interval) -> str:
    return f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
