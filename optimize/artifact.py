"""The artifact: a compiled program as a folder of JSON. Loading one never runs code and never unpickles.

``questree.json`` says what it is; ``program.json`` is DSPy's state of the program, or of each of several
(``program-0.json`` …); ``lessons.json`` holds the demonstrations of a program that chooses them by question.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.saving import get_dependency_versions

from ..common.errors import QuestreeError
from ..common.files import file_hash, restore_folder, swap_folder
from ..common.manifests import ManifestKind, checksum_of
from ..evaluation.identity import lm_facts, reader_name, retriever_facts, signature_fingerprints, versions
from ..programs import PROGRAMS, Program, build
from ..programs.modules import LMReader
from ..retrieval import DuplicateCheck, Reader, Retriever
from .composed import Composed, Lesson, Majority, NearestDemonstrations

FORMAT = 1
MANIFEST = "questree.json"
_KIND = ManifestKind("saved program", FORMAT, "save or compile the program again", sealed=True)

logger = logging.getLogger(__name__)


def save(program: Program, folder: str | Path, **facts: Any) -> Path:
    """Save a program: all of it or nothing; an artifact that is there is replaced.

    Args:
        program: any registered one, compiled or not, or several composed.
        folder: made, or replaced if it holds an artifact.
        facts: what else to say of it, as JSON: optimizer, scores, task …

    Raises:
        QuestreeError: if the folder holds something else, cannot be written, or a demonstration is not JSON.
    """
    target = Path(folder)
    if target.exists() and not (target / MANIFEST).exists() and any(target.iterdir()):
        raise QuestreeError(f"{target} is not empty and holds no saved program; name another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _write(program, temporary, facts)
            _replace(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise QuestreeError(f"Cannot save the program to {target}: {error.strerror}.") from error
    return target


def load(
    folder: str | Path,
    *,
    retriever: Retriever | None = None,
    reader: Reader | None = None,
    duplicates: DuplicateCheck | None = None,
    allow_changed_signatures: bool = False,
) -> Program:
    """A saved program, ready to be asked. The LM is whichever is configured; one in the artifact is never used.

    Args:
        folder: a path, or the address of one in MLflow: ``runs:/RUN_ID/program``, ``models:/NAME/VERSION``.
        retriever: where passages come from. One with another fingerprint than at compile time gives a warning.
        reader: as at compile time; where None, the LM reads, with the threshold of compile time.
        duplicates: for programs that skip repeated queries; by their words where None.
        allow_changed_signatures: load instructions and demonstrations although the code's signatures have
            changed since. The saved instructions then win over the code's.

    Raises:
        QuestreeError: if there is no artifact, it is damaged, a newer version wrote it, its program is unknown, or
            a signature or the reader is not what it was.
    """
    path = fetch(str(folder))
    manifest = read_manifest(path)
    name, settings = manifest["program"]["name"], manifest["program"]["settings"]
    if name not in PROGRAMS:
        raise QuestreeError(
            f"{path} holds the program {name!r}, which does not exist here. There are: {', '.join(PROGRAMS)}."
        )
    _check_reader(manifest, reader, path)
    parts = {"retriever": retriever, "duplicates": duplicates}
    members = [build(name, settings, reader=_reader(manifest, reader), **parts) for _ in manifest["members"]]
    _check_signatures(manifest, members[0], path, allow_changed_signatures)
    for member, file in zip(members, manifest["members"], strict=True):
        _load_state(member, path / file)
    program = _composed(manifest, members, path)
    _compare_retriever(manifest, program)
    return program


def fetch(place: str) -> Path:
    """The folder of an artifact; one in MLflow is downloaded.

    Raises:
        QuestreeError: if it cannot be fetched, or is not one.
    """
    if not place.startswith(("runs:/", "models:/", "mlflow-artifacts:/")):
        return Path(place)
    import mlflow

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    try:
        found = Path(mlflow.artifacts.download_artifacts(artifact_uri=place))
    except (mlflow.MlflowException, OSError) as error:
        raise QuestreeError(
            f"Cannot fetch {place} from {mlflow.get_tracking_uri()}: {str(error).splitlines()[0]} "
            "Check the address, and the tracking URI (--tracking-uri)."
        ) from error
    manifests = [found / MANIFEST] if (found / MANIFEST).exists() else sorted(found.rglob(MANIFEST))
    if len(manifests) != 1:
        raise QuestreeError(f"{place} holds {len(manifests)} saved programs, not one; give the path to it.")
    return manifests[0].parent


def read_manifest(folder: Path) -> dict[str, Any]:
    """What an artifact says of itself, after its bytes have been checked.

    Raises:
        QuestreeError: if there is none, it is damaged, or another version wrote it.
    """
    manifest = _KIND.read(folder / MANIFEST, dict)
    _KIND.check_files(folder, manifest["files"], full=True)
    return manifest


def state_of(program: Program) -> dict[str, Any]:
    """DSPy's state of the program, as JSON, without its LM: no name, address or engine travels with it."""
    state = {name: {**part, "lm": None} for name, part in program.dump_state().items()}
    try:
        pure: dict[str, Any] = json.loads(json.dumps(state, ensure_ascii=False))
    except TypeError as error:
        raise QuestreeError(f"A demonstration of {program.name} cannot be saved as JSON: {error}.") from error
    return pure


def _write(program: Program, folder: Path, facts: dict[str, Any]) -> None:
    members = program.members if isinstance(program, Composed) else [program]
    names = ["program.json"] if len(members) == 1 else [f"program-{n}.json" for n in range(len(members))]
    for member, name in zip(members, names, strict=True):
        metadata = {"dependency_versions": get_dependency_versions()}
        _write_json(folder / name, state_of(member) | {"metadata": metadata})
    if isinstance(program, NearestDemonstrations):
        _write_json(folder / "lessons.json", [lesson.model_dump(mode="json") for lesson in program.lessons])
    settings = program.settings.model_dump(mode="json")
    by_lm = reader_name(program) == "lm"  # a module with a prompt of its own, which may have been compiled
    reader = None if by_lm else getattr(members[0], "reader", None)
    manifest = {
        "format": FORMAT,
        "program": {"name": program.name, "settings": settings},
        "form": program.form if isinstance(program, Composed) else "single",
        "members": names,
        **({"k": program.k} if isinstance(program, NearestDemonstrations) else {}),
        "signatures": signature_fingerprints(build(program.name, settings, retriever=program.retriever, reader=reader)),
        "lm": lm_facts(),
        "retriever": retriever_facts(program),
        "reader": reader_name(program),
        **({"threshold": program.reader.threshold} if by_lm else {}),
        "versions": versions(),
        **json.loads(json.dumps(facts)),
        "files": {file.name: file_hash(file) for file in sorted(folder.iterdir())},
    }
    _write_json(folder / MANIFEST, manifest | {"checksum": checksum_of(manifest)})


def tidy(target: Path) -> None:
    """Put right what a `save` that was killed left beside its folder. No other process may be saving there.

    Args:
        target: the folder that it saved to; if it was just moving the new artifact there, the old one is put back.
    """
    for old in target.parent.glob(f".{target.name}.old.*"):
        restore_folder(target, old)
    for left in target.parent.glob(f".{target.name}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _replace(temporary: Path, target: Path) -> None:
    """Put the new folder in the place of the old; whoever looks finds one of the two."""
    temporary.chmod(0o755)
    old = target.with_name(f".{target.name}.old.{os.getpid()}")
    swap_folder(temporary, target, old)
    shutil.rmtree(old, ignore_errors=True)


def _composed(manifest: dict[str, Any], members: list[Program], path: Path) -> Program:
    form = manifest["form"]
    if form == Majority.form:
        return Majority(members)
    if form == NearestDemonstrations.form:
        lessons = [Lesson.model_validate(lesson) for lesson in json.loads((path / "lessons.json").read_bytes())]
        return NearestDemonstrations(members[0], lessons, manifest["k"])
    return members[0]


def _load_state(program: Program, file: Path) -> None:
    state = json.loads(file.read_bytes())
    state.pop("metadata", None)
    for name, part in state.items():
        if part.get("lm") is not None:
            logger.warning("%s: the LM saved with %s is not used; the configured one is.", file, name)
            part["lm"] = None
        part["demos"] = [dspy.Example(demo) for demo in part["demos"]]
    program.load_state(state)


def _check_reader(manifest: dict[str, Any], reader: Reader | None, path: Path) -> None:
    saved = manifest["reader"]
    given = "lm" if reader is None else reader.name
    if saved is not None and saved != given:
        raise QuestreeError(
            f"{path} was compiled with the reader {saved!r} and is loaded with {given!r}; "
            f"give reader={saved!r} as it was (--reader)."
        )


def _reader(manifest: dict[str, Any], given: Reader | None) -> Reader:
    """For one member: an LM that reads has a prompt, which is compiled with the member, and is its own."""
    if given is not None and not isinstance(given, LMReader):
        return given
    own = LMReader()
    own.threshold = manifest.get("threshold", own.threshold) if given is None else given.threshold
    return own


def _check_signatures(manifest: dict[str, Any], program: Program, path: Path, allowed: bool) -> None:
    saved, current = manifest["signatures"], signature_fingerprints(program)
    changed = [name for name in sorted({*saved, *current}) if saved.get(name) != current.get(name)]
    if not changed:
        return
    told = ", ".join(f"{(saved.get(name) or current[name])['signature']} ({name})" for name in changed)
    if saved.keys() != current.keys():
        raise QuestreeError(f"{path} does not fit this version's {program.name}: it differs in {told}. Compile anew.")
    if not allowed:
        raise QuestreeError(
            f"Changed since {path} was saved: {told}. Its instructions and demonstrations were made for the old "
            "signature. Compile anew, or load with allow_changed_signatures=True to use them all the same."
        )
    logger.warning("Changed since %s was saved: %s; loaded all the same.", path, told)


def _compare_retriever(manifest: dict[str, Any], program: Program) -> None:
    saved, now = manifest["retriever"], retriever_facts(program)
    if saved and now and saved["fingerprint"] != now["fingerprint"]:
        logger.warning(
            "Compiled over the index %s (%s), now asked over %s (%s): scores may differ.",
            saved["name"], saved["fingerprint"], now["name"], now["fingerprint"],
        )  # fmt: skip


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
