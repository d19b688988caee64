"""From folders of runs to one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...common.errors import QuestreeError
from ...common.json_files import parse_json, read_bytes
from ...lm.exchanges import Exchange
from ..stored_runs import StoredRun, kept_exchanges, stored_runs
from ..surroundings import Surroundings
from .archive import write_archive
from .packed_run import Header, PackedRun, members_of


def pack(folders: Sequence[Path], out: Path, *, texts: bool = True) -> dict[str, Any]:
    """Write a capsule of all runs in these folders; return what it says of them.

    Args:
        folders: of evaluations, comparisons or ablations.
        out: the file; one that is there is replaced.
        texts: whether to pack questions, prompts and passages; else their ids and digests, and the LM's replies.

    Raises:
        QuestreeError: if a folder holds no run, or a run cannot be replayed: an older version asked it, its program
            is none that a name and settings can build or asks several LMs, or it cannot be replayed without texts.
    """
    members: dict[str, bytes] = {}
    facts: dict[str, Any] = {"runs": []}
    for number, run in enumerate(stored_runs(folders)):
        packed = _packed(run, texts)
        members |= members_of(number, packed)
        facts["runs"].append(_facts(packed))
    write_archive(out, members, facts)
    return facts


def _packed(run: StoredRun, texts: bool) -> PackedRun:
    surroundings = _read(run, "surroundings.json")
    try:
        header = Header(
            name=run.name,
            identity=run.identity,
            policy=_read(run, "policy.json"),
            metrics=run.metrics,
            seed=run.seed,
            surroundings=Surroundings.model_validate(surroundings),
            texts=texts,
        )
    except ValidationError as error:
        raise QuestreeError(f"{run.folder}/surroundings.json is damaged; run the same evaluation again.") from error
    if header.surroundings.prompts == "own":
        raise QuestreeError(
            f"The run {run.name} cannot be packed: its program is none that a name and settings can build "
            "(one of your own)."
        )
    if "of predictors" in run.identity.get("lm", {}):
        raise QuestreeError(f"The run {run.name} cannot be packed: its predictors ask different LMs.")
    if header.surroundings.prompts == "compiled" and header.surroundings.state is None:
        raise QuestreeError(
            f"The run {run.name} cannot be packed: its program is compiled, and an older version kept no prompts of "
            "it, or a demonstration holds what JSON cannot."
        )
    kept = kept_exchanges(run.folder)
    asked = {id: one.exchanges() for id, one in kept.items()}
    if not texts:
        _check_no_texts(run.name, header, asked)
    return PackedRun(
        header=header,
        records=run.records,
        asked={one.id: _of(run, one.id, asked) for one in run.records},
        limits={id: one.limits for id, one in kept.items() if one.limits is not None},
    )


def _check_no_texts(name: str, header: Header, asked: dict[str, list[Exchange]]) -> None:
    """Raise a QuestreeError if a replay needs demonstrations, or what a trained reader read: both are texts."""
    why = None
    if header.surroundings.state is not None:
        why = "its program is compiled, and demonstrations are texts of the task"
    elif any(one.kind == "reading" for exchanges in asked.values() for one in exchanges):
        why = "a trained reader gives words of the passages"
    elif any(one.took and one.took.dropped for exchanges in asked.values() for one in exchanges):
        why = "its reranker left passages out of prompts, and their beginnings are kept"
    if why:
        raise QuestreeError(f"The run {name} cannot be packed without texts: {why}.")


def _of(run: StoredRun, id: str, asked: dict[str, list[Exchange]]) -> list[Exchange]:
    if id not in asked:
        raise QuestreeError(
            f"The run {run.name} cannot be packed: an older version asked {id!r}, and kept no replies. Evaluate again "
            "with another --out; what the LM's client still has in its cache costs nothing."
        )
    return asked[id]


def _read(run: StoredRun, name: str) -> Any:
    """Return a JSON file of the run's folder.

    Raises:
        QuestreeError: if there is none, or it is damaged.
    """
    try:
        return parse_json(read_bytes(run.folder / name))
    except FileNotFoundError:
        raise QuestreeError(
            f"The run {run.name} cannot be packed: an older version made it, and wrote no {name}. Evaluate again with "
            "another --out; what the LM's client still has in its cache costs nothing."
        ) from None
    except (OSError, ValueError) as problem:
        raise QuestreeError(f"{run.folder / name} is damaged ({problem}); run the same evaluation again.") from problem


def _facts(run: PackedRun) -> dict[str, Any]:
    """Return what a person wants to know of a run before it is replayed."""
    exchanges = [one for asked in run.asked.values() for one in asked]
    return {
        "name": run.header.name,
        "program": run.header.identity.get("program"),
        "task": run.header.identity.get("task"),
        "lm": run.header.identity.get("lm"),
        "retriever": run.header.identity.get("retriever"),
        "texts": run.header.texts,
        "questions": len(run.records),
        "requests": sum(one.kind == "request" for one in exchanges),
        "searches": sum(one.kind == "search" for one in exchanges),
        "versions": run.header.surroundings.versions,
        "machine": run.header.surroundings.machine,
    }
