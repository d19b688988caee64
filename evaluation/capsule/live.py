"""A capsule's questions, asked again of an LM of today: which answers differ, and from which step on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import dspy

from ...common.errors import QuestreeError
from ...lm.account import Account
from ...lm.limits import RunPolicy
from ...programs import REGISTRY
from ...retrieval import Retriever
from ..evaluation import Paired
from ..identity import lm_facts
from ..kept_run import begin
from ..records import Record
from ..run import Progress, ask_again
from ..run_file import writing
from ..series import named_progress
from ..stored_runs import StoredRun, open_runs, steps_of
from .differences import Difference, step_differences
from .restored import adapter_of, metrics_of, program_of
from .stand_ins import KeptSearches, all_steps, is_trained


@dataclass(frozen=True)
class AskedAgain:
    """A question's stored record, its new one, and the first step that differs: a prompt, or a reply."""

    stored: Record
    record: Record
    first: Difference | None

    @property
    def same(self) -> bool:
        """Return whether the answer is the same."""
        failed = [record.failure is None for record in (self.stored, self.record)]
        return self.stored.answer == self.record.answer and failed[0] == failed[1]


@dataclass(frozen=True)
class Drift(Paired):
    """A run that was asked again: the name of the LM then and now, and the questions in the order of the run."""

    name: str
    models: tuple[str, str]
    questions: tuple[AskedAgain, ...]


def replay_live(
    path: Path,
    out: Path,
    *,
    retriever: Retriever | None = None,
    policy: RunPolicy | None = None,
    seed: int = 0,
    allow_code: Iterable[str] = (),
    on_progress: Callable[[str, Progress], None] | None = None,
) -> list[Drift]:
    """Ask every question of a capsule again, of the configured LM and past its cache.

    A query of the stored run gets the passages of the capsule.

    Args:
        out: a folder for the runs; what is finished in it is not asked again.
        retriever: for the queries that the capsule does not hold; a question that has one fails without it.
        policy: see `evaluate`; its budget is that of all runs together.
        allow_code: programs of other packages that the capsule may name, as ``package:name``.
        on_progress: called with the run's name and how far it is.
    """
    if dspy.settings.lm is None:
        raise QuestreeError("No LM is configured; name one with --lm.")
    for name in allow_code:
        REGISTRY.allow(name)
    lm, drifts = dspy.settings.lm.copy(cache=False), list[Drift]()
    for run in open_runs(path):  # checks all runs before the first is paid for
        _check(run, retriever)
    with writing(out, "replay") as file, Account(file).open():
        for run in open_runs(path):
            with dspy.context(lm=lm, adapter=adapter_of(run)):
                searches = KeptSearches(run, retriever) if run.part("retriever") else None
                program = program_of(run, retriever=searches, reader=None, duplicates=None)
                kept = begin(file, run.name, program, "", policy)
                before, after = ask_again(
                    program,
                    run.records,
                    metrics_of(run),
                    out=kept,
                    simulated=run.simulated,
                    on_progress=named_progress(on_progress, run.name),
                    policy=policy,
                    seed=seed,
                )
                models = str(run.part("lm").get("name")), str(lm_facts()["name"])
            questions = []
            for then, now in zip(run.records, after.records, strict=True):
                asked = run.steps(now.id), steps_of(file, kept.number, now.id)
                questions.append(AskedAgain(then, now, next(step_differences(*asked, live=True), None)))
            drifts.append(Drift(before, after, run.name, models, tuple(questions)))
    return drifts


def _check(run: StoredRun, retriever: Retriever | None) -> None:
    """Raise a QuestreeError if the run cannot be asked again: it needs a part that is neither here nor packed."""
    adapter_of(run)
    metrics_of(run)
    program_of(run, retriever=None, reader=None, duplicates=None)
    if is_trained(run.part("reader")) or run.part("duplicates"):
        raise QuestreeError(
            f"{run.name} used a trained reader or a check of duplicate queries, which no capsule holds; "
            "evaluate it again instead."
        )
    compared = any(one.kind == "comparison" for one in all_steps(run))
    if compared and (retriever is None or retriever.similarity is None):
        name = run.part("retriever").get("name")
        raise QuestreeError(f"{run.name} compares texts as {name} does; give it with --retriever.")
