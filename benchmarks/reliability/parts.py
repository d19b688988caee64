"""The parts of the command: each tries something, and tells it in rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import iadd
from pathlib import Path
from typing import TYPE_CHECKING

from questree.data import MINI_CORPUS
from questree.programs import PROGRAMS

from .fault_counts import FaultCounts

if TYPE_CHECKING:
    from questree.evaluation.attacks import AttackRun
    from questree.evaluation.attacks.attack import Row as AttackRow

PLANTED = 5


@dataclass(frozen=True)
class Row:
    """What was tried.

    Attributes:
        what: it was.
        tried: how often.
        found: what came of it.
        wrong: what should not have come of it, case by case.
    """

    what: str
    tried: int
    found: str
    wrong: list[str] = field(default_factory=list)

    def told(self) -> dict[str, str]:
        """Texts by heading."""
        return {"tried": self.what, "times": f"{self.tried:,}", "wrong": str(len(self.wrong)), "found": self.found}


def faults(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """Servers at fault, for every program."""
    from .faults import fault_report, refusal_report, retriever_report

    seeds = range(given.seed, given.seed + given.schedules)
    counted = {
        "faults of the LM's server": reduce(iadd, map(fault_report, seeds), FaultCounts()),
        "connections that the LM's server refuses": refusal_report(),
        "faults of the retriever's server": reduce(iadd, map(retriever_report, seeds), FaultCounts()),
    }
    searching = sum(program.searches for program in PROGRAMS.values())
    return [
        _fault_row(what, counts, searching if "retriever" in what else len(PROGRAMS))
        for what, counts in counted.items()
    ], ""


def _fault_row(what: str, counts: FaultCounts, programs: int) -> Row:
    found = (
        f"{len(counts.faults)} kinds; {counts.questions} questions of {programs} programs: {counts.answered} "
        f"answered, {counts.failed.total()} failed; lost {len(counts.lost)}, under a wrong cause "
        f"{len(counts.mislabelled)}, after their deadline {len(counts.late)}, with other totals than the server's "
        f"{len(counts.differing)}"
    )
    return Row(what, counts.tried, found, [*counts.lost, *counts.mislabelled, *counts.late, *counts.differing])


def kills(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """`kill -9` of every long command."""
    from .interruptions import KINDS, interruption_report

    rows = []
    for kind in KINDS:
        (folder / kind).mkdir()
        counts = interruption_report(kind, given.kills, given.seed, folder / kind)
        found = (
            f"{counts.runs} runs; of {counts.kept:,} finished pieces lost {len(counts.lost)}, done again "
            f"{len(counts.repeated)}; runs that ended otherwise {len(counts.differing)}"
        )
        rows.append(Row(f"kill -9, {kind}", counts.kills, found, [*counts.lost, *counts.repeated, *counts.differing]))
    return rows, ""


def money(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """Commands that pay, killed and stopped."""
    from .money import PAYING, money_report

    rows = []
    for kind in PAYING:
        place = folder / kind.replace(" ", "-")
        place.mkdir()
        counts = money_report(kind, given.kills, given.stops, given.seed, place)
        found = f"{counts.kills} kills, {counts.stops} stops; {counts.runs} runs; requests seen {counts.seen:,}, "
        found += f"told {counts.seen + counts.noted:,}: {counts.noted} noted and cut off as they left"
        rows.append(Row(f"what was paid, {kind}", counts.kills + counts.stops, found, counts.differing))
    return rows, ""


def corruption(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """Bytes changed in artifacts, indexes and the LM's kept replies."""
    from questree.optimize import save
    from questree.programs.registry import build
    from questree.retrieval import DenseSettings, build_index, load_index

    from .cached_replies import corrupt_replies
    from .corruption import Corrupted, corrupt_artifact, corrupt_index
    from .small_encoder import save_small_encoder

    def row(what: str, found: Corrupted) -> Row:
        missed = [f"{count} in {name}" for name, count in found.missed.items()]
        return Row(what, found.tried.total(), f"{len(found.tried)} files; noticed {found.noticed.total():,}", missed)

    save_small_encoder(folder / "encoder")
    encoders = {"dense": {"checkpoint": folder / "encoder", "settings": DenseSettings(window=64)}}
    indexes = {
        kind: build_index(MINI_CORPUS, folder / kind, kind=kind, **encoders.get(kind, {}))
        for kind in ("bm25", "exact", "colbert", "dense")
    }
    retriever = load_index(indexes["bm25"])
    program = save(build("searchain", {}, retriever=retriever), folder / "program")
    rows = [row("bytes of an artifact", corrupt_artifact(program, given.bytes, given.seed, retriever=retriever))]
    for kind, index in indexes.items():
        rows.append(row(f"bytes of an index, {kind}", corrupt_index(index, given.bytes, given.seed)))
    replies = corrupt_replies(folder / "replies", 10 * given.bytes, given.seed)
    found = (
        f"asked again after {replies.asked_again}, refused after {replies.refused}, without effect "
        f"{replies.without_effect}; other answers {len(replies.wrong)}"
    )
    return [*rows, Row("bytes of the LM cache", replies.tried, found, replies.wrong)], ""


def fuzzing(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """Hostile texts in prompts, trees, pages and on the screen."""
    from .fuzz import fuzz

    found = fuzz(given.texts, given.seed)
    rows = []
    for what, count in found.tried.items():
        broken = [text for name, text in found.broken if name == what]
        rows.append(Row(f"hostile texts, {what}", count, f"held {count - len(broken):,}", broken))
    return rows, ""


def requests(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """Hostile requests to the retriever's server."""
    from .hostile_requests import send_hostile

    found = send_hostile(given.requests, given.seed)
    said = f"{len(found.tried)} kinds; refused or left as they should be {found.tried.total() - len(found.wrong):,}"
    return [Row("hostile requests to the retriever's server", found.tried.total(), said, found.wrong)], ""


def forgeries(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """Folders that are read back, with a file forged."""
    from .forged_folders import forge_folders

    found = forge_folders(given.forgeries, given.seed, folder)
    kinds = ", ".join(f"{name} {count}" for name, count in found.tried.items())
    said = f"{kinds}; refused by name {found.refused:,}, harmless {found.tried.total() - found.refused:,}"
    return [Row("forged files", found.tried.total(), said, found.wrong)], ""


def attacks(given: argparse.Namespace, folder: Path) -> tuple[list[Row], str]:
    """Plants against every program, with and without a defence."""
    from questree.evaluation.attacks import KINDS
    from questree.experiment import Experiment
    from questree.retrieval import build_index
    from questree.settings import RunSettings

    retriever = given.retriever or str(build_index(MINI_CORPUS, folder / "bm25", kind="bm25"))
    settings = RunSettings(
        task=given.task,
        split=given.split,
        lm=given.lm,
        retriever=retriever,
        reader=given.reader,
        limit=given.limit,
        seed=given.seed,
        out=given.out / "attacks",
    )
    run, _ = Experiment(settings).attack(
        list(PROGRAMS),
        kinds=KINDS,
        planted=[PLANTED],
        defences=["none", "agreement"] + ([] if given.reader == "lm" else ["reader"]),
        credulous=given.credulous,
    )
    return _won(run), _by_program(run)


def _won(run: AttackRun) -> list[Row]:
    """Over all programs that search: how often each kind won."""
    rows = []
    for kind, defence in dict.fromkeys((row.attack, row.defence) for row in run.rows):
        of_it = [row for row in run.rows if (row.attack, row.defence) == (kind, defence)]
        of_it = [row for row in of_it if PROGRAMS[row.program].searches]
        tried = sum(row.questions for row in of_it)
        won = sum(round(row.success.mean * row.questions) for row in of_it)
        found = f"won {won:,} ({won / tried:.0%}); {len(of_it)} programs, defence {defence}"
        rows.append(Row(f"attack, {kind}", tried, found))
    return rows


def _by_program(run: AttackRun) -> str:
    """For each program: its score over the clean corpus, how often each kind won, and the score then; each defence."""
    from questree.evaluation.tables import markdown_of

    defences = list(dict.fromkeys(row.defence for row in run.rows))
    lines = []
    for program in dict.fromkeys(row.program for row in run.rows):
        of_it = [row for row in run.rows if row.program == program]
        line = {"program": program, f"{run.metric}, clean": _each(of_it, defences, lambda row: f"{row.clean.mean:.2f}")}
        for kind in dict.fromkeys(row.attack for row in of_it):
            under = [row for row in of_it if row.attack == kind]
            line[kind] = _each(under, defences, lambda row: f"{row.success.mean:.2f} ({row.attacked.mean:.2f})")
        lines.append(line)
    facts = ", ".join(f"{what} {fact}" for what, fact in run.facts.items() if fact)
    said = f"Share of questions that the attacker won, and the score under attack; defence {' → '.join(defences)}; "
    return f"{said}{PLANTED} planted; n = {run.rows[0].questions} ({facts}; simulated).\n\n{markdown_of(lines)}"


def _each(rows: Sequence[AttackRow], defences: list[str], said: Callable[[AttackRow], str]) -> str:
    """A figure with each defence."""
    by_defence = {row.defence: said(row) for row in rows}
    return " → ".join(by_defence[defence] for defence in defences)
