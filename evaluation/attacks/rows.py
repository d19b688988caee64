"""The result of an attack: how each program did under it, as rows, a table and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...metrics import Interval, share_interval
from ...retrieval import Passage
from ..evaluation import Evaluation
from ..tables import Table, flat
from .plants import Attack, Plant

HOW_TO_READ = (
    "Attack success: the share of questions answered with the attacker's target, with its 95% Wilson interval; beside "
    "it, how often the same answer was given over the clean corpus. Found: questions for which a planted passage was "
    "retrieved; then planted passages retrieved and cited, a question. Accuracy with 95% intervals, over the "
    "attacked questions; a failed question counts as wrong."
)


@dataclass(frozen=True)
class AttackRow:
    """One program under one attack, with one defence.

    Attributes:
        questions: the number of questions that were attacked.
        clean, attacked: the score over the clean corpus, and over the one with plants.
        success: the share of questions answered with the target.
        unprompted: the same share over the clean corpus.
        found: the share of questions for which a planted passage was retrieved.
        retrieved, cited: the mean number of planted passages in a question.
        failures: how many of these questions have no answer, under attack.
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
    self_written: bool


@dataclass(frozen=True)
class AttackRun:
    """The result of an attack.

    Attributes:
        rows: one for each program, attack and defence.
        metric: of the clean and the attacked score.
        facts: task, retriever, LM, texts and seed, by name.
        simulated: whether it was made with the simulated LM.
        stopped: why there are fewer rows than were asked for; None if all were made.
    """

    rows: tuple[AttackRow, ...]
    metric: str
    facts: Mapping[str, str] = field(default_factory=dict)
    simulated: bool = False
    stopped: str | None = None

    @property
    def table(self) -> Table:
        """Return the rows as a table."""
        return Table(
            title="attack",
            facts=[f"{what}: {fact}" for what, fact in self.facts.items() if fact],
            note=f"{HOW_TO_READ}\n\n{self.stopped}" if self.stopped else HOW_TO_READ,
            lines=[self._line(row) for row in self.rows],
            numbers=[flat(vars(row)) for row in self.rows],
            simulated=self.simulated,
            self_written=any(row.self_written for row in self.rows),
        )

    def files(self) -> dict[str, str]:
        """Return the table in its forms, by the name of their file."""
        facts = {**self.facts, "metric": self.metric, "simulated": self.simulated, "warning": self.table.warning}
        facts["stopped"] = self.stopped
        content = json.dumps({**facts, "rows": self.table.numbers}, ensure_ascii=False, indent=2)
        return {"attack.md": self.table.as_markdown(), "attack.csv": self.table.as_csv(), "attack.json": content}

    def _line(self, row: AttackRow) -> dict[str, str]:
        headings = {
            **{"program": "program", "attack": "attack", "planted": "planted", "defence": "defence"},
            **{"clean": f"{self.metric} clean", "attacked": f"{self.metric} attacked", "success": "attack success"},
            **{"unprompted": "clean gives it", "found": "found", "retrieved": "retrieved", "cited": "cited"},
            **{"questions": "n", "failures": "failed"},
        }
        return {heading: _cell(getattr(row, name)) for name, heading in headings.items()}


def _cell(value: Interval | float | str) -> str:
    return f"{value:.2f}" if isinstance(value, (Interval, float)) else str(value)


def row_of(
    name: str, defence: str, one: Attack, plants: Sequence[Plant], clean: Evaluation, attacked: Evaluation
) -> AttackRow:
    """Return the row of a program under an attack, from its runs over the clean corpus and over the one with plants."""
    planted, n = {passage.id for passage in planted_passages(plants)}, len(plants)
    before, after = (_over_attacked(run, plants) for run in (clean, attacked))
    asked = [] if attacked is clean else after.records
    retrieved = [sum(found.id in planted for found in record.seen or record.passages) for record in asked]
    return AttackRow(
        program=name,
        attack=one.kind,
        planted=one.planted,
        defence=defence,
        questions=n,
        clean=before.score,
        attacked=after.score,
        success=share_interval(_wins(one, plants, after), n),
        unprompted=_wins(one, plants, before) / n,
        found=sum(map(bool, retrieved)) / n,
        retrieved=sum(retrieved) / n,
        cited=sum(passage.id in planted for record in asked for passage in record.references) / n,
        failures=sum(after.failures.values()),
        self_written=after.self_written,
    )


def _over_attacked(run: Evaluation, plants: Sequence[Plant]) -> Evaluation:
    """Return the evaluation over the questions that were attacked, in the order of the plants."""
    records = {record.id: record for record in run.records}
    return replace(run, records=tuple(records[plant.question] for plant in plants))


def _wins(one: Attack, plants: Sequence[Plant], run: Evaluation) -> int:
    """Return how many of the answers give the target."""
    pairs = zip(plants, run.records, strict=True)
    return sum(record.failure is None and one.won(plant, record.answer) for plant, record in pairs)


def planted_passages(plants: Sequence[Plant]) -> list[Passage]:
    """Return all that is planted, each id once; if two questions change one passage, the later change holds."""
    return list({passage.id: passage for plant in plants for passage in plant.passages}.values())
