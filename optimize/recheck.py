"""A compiled program after an upgrade: its score on the questions that were kept with it, and which prompts changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ..common.errors import QuestreeError
from ..evaluation.evaluation import Paired
from ..evaluation.identity import signature_fingerprints, versions
from ..evaluation.records import Record
from ..evaluation.run import Progress, ask_again
from ..evaluation.run_file import NAME, WritableFile, reading
from ..evaluation.stored_runs import read_records
from ..lm.limits import RunPolicy
from ..metrics import metric
from ..programs import Program, build
from ..programs.prompts import RenderedPrompt, differences, rendered_prompts
from .artifact import read_artifact

PROMPTS = "prompts"
"""The prompts of a compiled program as they were sent when it was compiled: a fact in the file of its compilation."""


@dataclass(frozen=True)
class Recheck(Paired):
    """What a compiled program scored then and scores now, on the same questions."""

    prompts: Mapping[str, str]
    signatures: tuple[str, ...]
    versions: Mapping[str, tuple[str, str]]


def keep_prompts(file: WritableFile, program: Program) -> None:
    """Write the prompts of a compiled program into its compilation's file, if they are not there yet."""
    if file.fact(PROMPTS) is None:
        file.set_fact(PROMPTS, [asdict(prompt) for prompt in rendered_prompts(program)])


def recheck(
    artifact: Path,
    program: Program,
    *,
    out: Path | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Recheck:
    """Ask a compiled program its dev questions again, and compare with what it answered when it was compiled.

    Args:
        artifact: the folder ``program`` that `compile` wrote; the folder ``after`` beside it holds the questions.
        policy: see `evaluate`.
        on_progress: called with how far it is.
    """
    manifest, kept = read_artifact(artifact).manifest, _kept(artifact)
    metrics = [metric(name) for name in kept[0].scores]
    before, now = ask_again(
        program,
        kept,
        metrics,
        simulated=bool(manifest.lm.get("simulated")),
        seed=seed,
        task=str(manifest.facts().get("task") or ""),
        out=out,
        policy=policy,
        on_progress=on_progress,
    )
    coded = build(manifest.program.name, manifest.program.settings, reader=getattr(program, "reader", None))
    signatures, saved, installed = signature_fingerprints(coded), manifest.signatures, versions()
    return Recheck(
        before,
        now,
        _changed_prompts(artifact.parent, program),
        tuple(name for name in signatures if name not in saved or saved[name].model_dump() != signatures[name]),
        {
            name: (manifest.versions.get(name, "none"), installed.get(name, "none"))
            for name in sorted({*manifest.versions, *installed})
            if manifest.versions.get(name) != installed.get(name)
        },
    )


def _kept(artifact: Path) -> list[Record]:
    try:
        if kept := read_records(artifact.parent / "after"):
            return kept
        raise QuestreeError("It has no answer yet.")
    except QuestreeError as error:
        raise QuestreeError(
            f"No questions were kept beside {artifact}: {error} Name the folder `program` in the folder that `questree "
            "compile` wrote; where the compilation was interrupted, compile again to go on."
        ) from error


def _changed_prompts(folder: Path, program: Program) -> dict[str, str]:
    """Return what differs between the prompts that were kept and those that the program sends now."""
    with reading(folder / NAME) as file:
        try:
            kept = TypeAdapter(list[RenderedPrompt]).validate_python(file.fact(PROMPTS))
        except ValueError as error:
            raise QuestreeError(f"{file.path} holds no prompts ({error}); compile anew.") from error
    return differences(kept, rendered_prompts(program))
