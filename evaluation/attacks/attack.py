"""Programs under attack: each is asked the same questions over the clean corpus and over one with plants in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...common.files import write_atomically
from ...lm.account import Account
from ...lm.limits import RunPolicy
from ...programs import Program
from ...retrieval import Reader, Retriever
from ...retrieval.defences import defended
from ..evaluation import Evaluation
from ..identity import lm_facts, lms_facts
from ..kept_run import begin
from ..record_scores import ScoreFunction, checked_metrics, metric_name
from ..run import Progress, evaluate
from ..run_file import writing
from ..series import ask_each, named_progress, told_of
from .plants import Attack, Plant, Writer, plants_for
from .rows import AttackRow, AttackRun, planted_passages, row_of
from .seeded_retriever import seeded

_CLEAN = "clean"
"""The name of the corpus without plants."""


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
        corpora = {one.name: seeded(retriever, planted_passages(plants[one])) for one in attacks} | {_CLEAN: retriever}

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
                    rows.append(row_of(name, defence, one, plants[one], clean, attacked))

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


def over_corpus(program: Program, retriever: Retriever) -> Program:
    """Return a copy of the program that searches with this retriever, if it searches at all."""
    clone = program.deepcopy()
    for _, module in clone.named_sub_modules(Program):
        if module.retriever is not None:
            module.retriever = retriever
    return clone
