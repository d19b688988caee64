"""A capsule: a copy of runs in one file, without the payments of stopped attempts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from ...common.errors import QuestreeError
from ...common.files import cannot_write, replacing
from ..comparison.labels import unused
from ..kept_run import match_run
from ..run_file import writing
from ..stored_runs import StoredRun, open_runs


def pack(places: Sequence[Path], out: Path) -> list[dict[str, Any]]:
    """Write all runs in these places into one file; return each run's name and numbers of questions and steps.

    Args:
        places: of runs (`find`).
        out: the file; one that is there is replaced.
    """
    told: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory(prefix="questree-") as folder, writing(Path(folder), "capsule", durable=False) as file:
        for place in places:
            for run in open_runs(place):
                _check(run)
                name = unused(run.name, told)
                kept = match_run(file, name, run.identity, environment=run.environment.model_dump_json())
                counts = {"questions": len(run.records), "requests": 0, "searches": 0}
                for record in run.records:
                    steps = run.steps(record.id)
                    kept.append(record, steps, run.limits(record.id))
                    counts["requests"] += sum(one.kind == "request" for one in steps)
                    counts["searches"] += sum(one.kind == "search" for one in steps)
                kept.end(run.metrics, run.seed, [record.id for record in run.records])
                told[name] = {"name": name, **counts}
        file.close()
        try:
            with replacing(out) as unfinished:
                copyfile(file.path, unfinished)
        except OSError as error:
            raise cannot_write(out, error) from error
    return list(told.values())


def _check(run: StoredRun) -> None:
    """Raise a `QuestreeError` if a run cannot be replayed."""
    why = None
    if run.environment.program is None:
        why = "its program is none that a name and settings can build (one of your own)"
    elif "of predictors" in run.part("lm"):
        why = "its predictors ask different LMs"
    elif run.environment.compiled and run.environment.state is None:
        why = "its program is compiled, and a demonstration holds what JSON cannot"
    if why:
        raise QuestreeError(f"The run {run.name} cannot be packed: {why}.")
