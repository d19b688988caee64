"""Programs under attack: each is asked the same questions over the clean corpus and over one with plants in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...common.files import write_atomically
from ...lm.account import Account
from ...lm.limits import RunPolicy
from ...metrics import Interval, share_interval
from ...programs import Program
from ...retrieval import Passage, Reader, Retriever
from ...retrieval.defences import defended
from ..comparison.comparison import ask_each, named_progress, told_of
from ..evaluation import Evaluation
from ..identity import lm_facts, lms_facts
from ..kept_run import begin
from ..record_scores import ScoreFunction, checked_metrics, metric_name
from ..run import Progress, evaluate
from ..run_file import writing
from ..tables import Table, flat
from .plants import Attack, Plant, Writer, plants_for
from .seeded_retriever import seeded

_CLEAN = "clean"
"""The name of the corpus without plants."""
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


def attack(
    programs: Mapping[str, Program],
    examples: Sequence[dspy.Example],
    metric: ScoreFunction,
    attacks: Sequence[Attack],
    *,
    retriever: Retriever,
    out: str | Path,
    pool: Sequence[dspy.Example] | None = None,
    defences: Sequence[str] = ("none",),
    reader: Reader | None = None,
    write: Writer | None = None,
    task: str = "",
    seed: int = 0,
    policy: RunPolicy | None = None,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> AttackRun:
    """Ask every program every question, with and without each attack and each defence.

    Everything that is planted for any of the questions is in the corpus at once, as in PoisonedRAG. All runs are in one
    file, which the same attack resumes.

    Args:
        programs: by name; each with a retriever, or None if it takes none.
        examples: the questions.
        metric: scores the answers; the clean and the attacked score are its means.
        attacks: what is tried, one after the other.
        retriever: over the genuine corpus; the programs' own is replaced.
        out: a folder: ``runs.db`` in it holds a run for each defence, attack and program; the table stands beside it.
        pool: questions whose answers may become targets; by default the questions themselves.
        defences: by name, of `questree.retrieval.defences.DEFENCES`.
        reader: of the defence by a reader.
        write: writes the texts that argue for the target; templates by default.
        task, seed: see `evaluate`.
        policy: see `evaluate`; a budget in it is for the whole attack, with the LM requests of ``write``. When
            it is used up, the rows that were made until then are the result, and ``stopped`` says how to go on. A
            program that fails by itself has no further rows, and ``stopped`` names it.
        on_progress: called with the name of what is being asked, and how far it is.

    Raises:
        QuestreeError: if there is no program, no attack or no such defence, or another process is writing ``out``;
            also what `evaluate` raises, but an `OutOfBudgetError` or a `GivenUpError` only if no row was made.
    """
    if not programs or not attacks or not defences:
        raise QuestreeError("There is nothing to attack; name at least one program, kind of attack and defence (none).")
    for defence in defences:
        defended(retriever, defence, reader)  # before anything is asked
    checked_metrics(metric, examples)
    out, rows = Path(out), list[AttackRow]()
    with writing(out, "attack") as file, Account(file).open() as account:
        plants = _plants(attacks, examples, pool or examples, retriever, write and _bounded(write, account, policy))
        corpora = {one.name: seeded(retriever, _passages(plants[one])) for one in attacks} | {_CLEAN: retriever}

        def ask(name: str, defence: str, corpus: str) -> Evaluation:
            label = f"{name}, {corpus}, defence {defence}"
            program = over_corpus(programs[name], defended(corpora[corpus], defence, reader))
            kept = begin(file, f"{defence}/{corpus}/{name}", program, task, policy)
            how: dict[str, Any] = {"task": task, "out": kept, "seed": seed, "policy": policy}
            with told_of(label):
                return evaluate(program, examples, metric, **how, on_progress=named_progress(on_progress, label))

        def attack_one(name: str) -> None:
            for defence in defences:
                clean = ask(name, defence, _CLEAN)
                for one in attacks:
                    attacked = clean if programs[name].retriever is None else ask(name, defence, one.name)
                    rows.append(_row(name, defence, one, plants[one], clean, attacked))

        stopped = ask_each(programs, attack_one, rows)
        shared = _shared(programs.values(), retriever, write, task, seed)
        run = AttackRun(tuple(rows), metric_name(metric), **shared, stopped=stopped)
        for name, text in run.files().items():
            write_atomically(out / name, text)
    return run


def _shared(
    programs: Iterable[Program], retriever: Retriever, write: Writer | None, task: str, seed: int
) -> dict[str, Any]:
    """Return the facts of all rows, and whether a simulated LM had a part in them."""
    lms = [*map(lms_facts, programs), *([] if write is None else [lm_facts()])]
    facts = {"task": task, "retriever": retriever.name, "LM": ", ".join(sorted({lm["name"] for lm in lms}))}
    facts |= {"texts": "templates" if write is None else "written by the LM", "seed": str(seed)}
    return {"facts": facts, "simulated": any(lm["simulated"] for lm in lms)}


def _bounded(write: Writer, account: Account, policy: RunPolicy | None) -> Writer:
    """Return a writer that asks the LM for nothing once the budget is spent."""

    def bounded(question: str, target: str, count: int) -> list[str]:
        account.check_budget(policy)
        return write(question, target, count)

    return bounded


def _plants(attacks: Sequence[Attack], *given: Any) -> dict[Attack, list[Plant]]:
    """Return what each attack plants (`plants_for`); one that can plant nothing is refused."""
    plants = {one: plants_for(one, *given) for one in attacks}
    if bare := [one.kind for one in attacks if not plants[one]]:
        raise QuestreeError(f"Nothing can be planted for {bare[0]}: no question has a wrong answer to argue for.")
    return plants


def _passages(plants: Sequence[Plant]) -> list[Passage]:
    """Return all that is planted, each id once; if two questions change one passage, the later change holds."""
    return list({passage.id: passage for plant in plants for passage in plant.passages}.values())


def over_corpus(program: Program, retriever: Retriever) -> Program:
    """Return a copy of the program that searches with this retriever, if it searches at all."""
    clone = program.deepcopy()
    for _, module in clone.named_sub_modules(Program):
        if module.retriever is not None:
            module.retriever = retriever
    return clone


def _row(
    name: str, defence: str, one: Attack, plants: Sequence[Plant], clean: Evaluation, attacked: Evaluation
) -> AttackRow:
    planted, n = {passage.id for passage in _passages(plants)}, len(plants)
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
