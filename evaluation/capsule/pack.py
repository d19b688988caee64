"""From files of runs to one file that anyone can replay."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from ...common.errors import QuestreeError
from ...common.files import replacing
from ...lm.policy import RunPolicy
from ..comparison.labels import unused
from ..kept_run import KeptRun, begin_run
from ..run_file import writing
from .packed_run import PackedRun, read_runs
from .texts import exchange_without_texts, record_digest, without_texts


def pack(places: Sequence[Path], out: Path, *, texts: bool = True) -> list[dict[str, Any]]:
    """Write all runs in these places into one file; return what it holds of each.

    Args:
        places: of runs (`find`).
        out: the file; one that is there is replaced.
        texts: whether to pack questions, prompts and passages; else their ids and digests, and the LM's replies.

    Raises:
        QuestreeError: if a place holds no run, or a run cannot be replayed: its program is none that a name and
            settings can build or asks several LMs, or it cannot be replayed without texts.
    """
    facts: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="questree-")))
        file = stack.enter_context(writing(folder, "capsule", durable=False))
        for place in places:
            for run in read_runs(place):
                _check(run, texts=texts)
                name = unused(run.name, facts)
                facts[name] = {"name": name, **_facts(run), "texts": texts}
                _copy(run, begin_run(file, name, run.identity, RunPolicy(), run.environment), texts=texts)
        if not texts:
            file.set_fact("without texts", True)
        file.close()
        try:
            with replacing(out) as unfinished:
                copyfile(file.path, unfinished)
        except OSError as error:
            raise QuestreeError(f"Cannot write {out}: {error.strerror}; make room, or name another file.") from error
    return list(facts.values())


def _copy(run: PackedRun, kept: KeptRun, *, texts: bool) -> None:
    for record in run.records:
        steps, scored = run.asked[record.id], record
        if texts:
            kept.append(record, steps, run.limits.get(record.id))
        else:
            scored = without_texts(record)
            kept.append(scored, list(map(exchange_without_texts, steps)), run.limits.get(record.id))
            kept.keep_digests(record.id, [one.digest for one in steps], record_digest(record))
        kept.append_scores(scored)
    kept.end(run.metrics, run.seed, [record.id for record in run.records])


def _check(run: PackedRun, *, texts: bool) -> None:
    """Raise a `QuestreeError` if a run cannot be replayed, or not without texts."""
    why, without = None, None
    if run.environment.prompts == "own":
        why = "its program is none that a name and settings can build (one of your own)"
    elif "of predictors" in run.part("lm"):
        why = "its predictors ask different LMs"
    elif run.environment.prompts == "compiled" and run.environment.state is None:
        why = "its program is compiled, and a demonstration holds what JSON cannot"
    steps = [one for asked in run.asked.values() for one in asked]
    if run.environment.state is not None:
        without = "its program is compiled, and demonstrations are texts of the task"
    elif any(one.kind == "reading" for one in steps):
        without = "a trained reader gives words of the passages"
    elif any(one.took and one.took.dropped for one in steps):
        without = "its reranker left passages out of prompts, and their beginnings are kept"
    if why:
        raise QuestreeError(f"The run {run.name} cannot be packed: {why}.")
    if without and not texts:
        raise QuestreeError(f"The run {run.name} cannot be packed without texts: {without}.")


def _facts(run: PackedRun) -> dict[str, Any]:
    """Return what a person wants to know of a run before it is replayed."""
    steps = [one for asked in run.asked.values() for one in asked]
    return {
        **{name: run.identity.get(name) for name in ("program", "task", "lm", "retriever")},
        "questions": len(run.records),
        "requests": sum(one.kind == "request" for one in steps),
        "searches": sum(one.kind == "search" for one in steps),
        "versions": run.environment.versions,
        "machine": run.environment.machine,
    }
