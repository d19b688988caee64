"""The artifact: a compiled program as a folder of JSON.

``questree.json`` says what it is. ``program.json`` holds the state of its predictors, or ``program-0.json`` … those of
several members. ``lessons.json`` holds the demonstrations of a program that chooses them by question.

Loading one runs no code, unpickles nothing, opens no other file, and takes from these what `programs.states` allows.
"""

from __future__ import annotations

import glob
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from dspy.utils.saving import get_dependency_versions
from pydantic import JsonValue

from ..common.errors import QuestreeError
from ..common.files import check_name, file_hash, read_unswapped, restore_folder, swap_folder
from ..common.json_files import LARGEST, parse_json, read_bytes, validate
from ..common.manifests import ManifestKind, checksum_of
from ..evaluation.identity import lm_facts, reader_name, retriever_facts, signature_fingerprints, versions
from ..evaluation.tracking_store import bound_retries, without_password
from ..lm.failure import first_line
from ..programs import REGISTRY, Program, build, build_kind, saved_name
from ..programs.composed import Composed, Lesson, NearestDemonstrations
from ..programs.modules.reader import LMReader
from ..programs.states import (
    Lessons,
    ProgramState,
    composed,
    members_of,
    refuse_marks,
    state_of,
    take_state,
    to_json,
)
from ..retrieval import DuplicateCheck, Reader, Retriever
from . import hub
from .artifact_format import LESSONS, Manifest

FORMAT = 1
MANIFEST = "questree.json"

_AGAIN = "save or compile the program again"
_KIND = ManifestKind("saved program", FORMAT, _AGAIN, sealed=True)

logger = logging.getLogger(__name__)


# What is written


def save(program: Program, folder: str | Path, **facts: Any) -> Path:
    """Save a program: all of it or nothing; an artifact that is there is replaced.

    Args:
        program: any one, compiled or not, or several composed. Its code is named, and not stored.
        folder: made, or replaced if it holds an artifact.
        facts: what else to say of it, as JSON: optimizer, scores, task …

    Raises:
        QuestreeError: if the folder holds something else, cannot be written, or a demonstration is not JSON.
    """
    target = Path(folder)
    check_name(target)
    if target.exists() and not (target / MANIFEST).exists() and any(target.iterdir()):
        raise QuestreeError(f"{target} is not empty and holds no saved program; name another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _write(program, temporary, facts)
            _put_in_place(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise QuestreeError(f"Cannot save the program to {target}: {error.strerror}.") from error
    return target


def tidy(target: Path) -> None:
    """Put right what a `save` that was killed left beside its folder. No other process may be saving there.

    Args:
        target: the folder that it saved to; if it was just moving the new artifact there, the old one is put back.
    """
    if old := _old(target):
        restore_folder(target, old)
    for left in target.parent.glob(f".{glob.escape(target.name)}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _write(program: Program, folder: Path, facts: dict[str, Any]) -> None:
    members = members_of(program)
    names = ["program.json"] if len(members) == 1 else [f"program-{n}.json" for n in range(len(members))]
    for member, name in zip(members, names, strict=True):
        metadata = {"dependency_versions": get_dependency_versions()}
        _write_json(folder / name, state_of(member) | {"metadata": metadata})
    if isinstance(program, NearestDemonstrations):
        _write_json(folder / LESSONS, [lesson.model_dump(mode="json") for lesson in program.lessons])
    by_lm = reader_name(program) == "lm"  # a module with a prompt of its own, which may have been compiled
    reader = LMReader() if by_lm else getattr(members[0], "reader", None)
    settings = program.settings.model_dump(mode="json")
    kind = type(members[0])
    as_coded = build_kind(kind, settings, retriever=program.retriever, reader=reader)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "program": {"name": saved_name(kind), "settings": settings},
        "form": program.form if isinstance(program, Composed) else "single",
        "members": names,
        **({"k": program.k} if isinstance(program, NearestDemonstrations) else {}),
        "signatures": signature_fingerprints(as_coded),
        "lm": lm_facts(),
        "retriever": retriever_facts(program),
        "reader": reader_name(program),
        **({"threshold": program.reader.threshold} if by_lm else {}),
        "versions": versions(),
        **json.loads(json.dumps(facts)),
        "files": {file.name: file_hash(file) for file in sorted(folder.iterdir())},
    }
    _write_json(folder / MANIFEST, manifest | {"checksum": checksum_of(manifest)})


def _write_json(path: Path, content: Any) -> None:
    try:
        text = to_json(content)
    except (TypeError, ValueError) as error:
        raise QuestreeError(f"{path.name} cannot be saved as JSON: {error}.") from error
    path.write_text(f"{text}\n", encoding="utf-8")


def _put_in_place(temporary: Path, target: Path) -> None:
    """Put the new folder in the place of the old one; at any moment there is one of the two."""
    temporary.chmod(0o755)
    old = target.with_name(f".{target.name}.old.{os.getpid()}")
    swap_folder(temporary, target, old)
    shutil.rmtree(old, ignore_errors=True)


def _old(target: Path) -> Path | None:
    """Return the artifact that a `save` set aside, and has not deleted yet; None if there is none."""
    return next(target.parent.glob(f".{glob.escape(target.name)}.old.*"), None)


# What is read back


@dataclass(frozen=True)
class Artifact:
    """An artifact as it was read: whole, and of the form that it should have. Nothing is built yet.

    Attributes:
        folder: that it was read from; the address of one in MLflow.
        manifest: what it says of itself.
        states: one for each member.
        lessons: of a program that chooses its demonstrations by question.
    """

    folder: Path
    manifest: Manifest
    states: list[ProgramState]
    lessons: list[Lesson]


def read_artifact(place: str | Path) -> Artifact:
    """Read the files of an artifact, each once, and check them; all of one `save`, even if another goes on meanwhile.

    Args:
        place: a folder, or the address of one in MLflow or on the hub, which is trusted no more than any other folder.

    Raises:
        QuestreeError: if there is none, or a file is damaged or sets what no file may; names the file.
    """
    on_hub = str(place).startswith(hub.PREFIX)
    if not on_hub and not str(place).startswith(("runs:/", "models:/", "mlflow-artifacts:/")):
        folder = Path(place)
        return read_unswapped(folder, lambda: _old(folder), _read)
    with TemporaryDirectory() as temporary:
        if on_hub:
            folder, named = Path(temporary), str(place)
            place = hub.fetch(named, folder)
            if place != named:
                logger.warning("%s is %s today; name that one to get the same again.", named, place)
        else:
            folder = _download(str(place), temporary)
        try:
            return replace(_read(folder), folder=Path(place))
        except QuestreeError as error:
            raise QuestreeError(str(error).replace(str(folder), str(place))) from error


def _download(address: str, target: str) -> Path:
    """Fetch the artifact at an address in MLflow into a folder; return the folder that holds it."""
    import mlflow

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    bound_retries()
    try:
        found = Path(mlflow.artifacts.download_artifacts(artifact_uri=address, dst_path=target))
    except Exception as error:  # MLflow checks little of what a server sends, and fails in any way over the rest
        raise QuestreeError(
            f"Cannot fetch {address} from {without_password(mlflow.get_tracking_uri())}: "
            f"{first_line(error).rstrip('.')}. Check the address, and the tracking URI (--tracking-uri)."
        ) from error
    manifests = [found / MANIFEST] if (found / MANIFEST).exists() else sorted(found.rglob(MANIFEST))
    if len(manifests) != 1:
        raise QuestreeError(f"{address} holds {len(manifests)} saved programs, not one; give the path to it.")
    return manifests[0].parent


def _read(folder: Path) -> Artifact:
    _check_there(folder)
    manifest = _KIND.read(folder / MANIFEST, lambda content: validate(Manifest, content))
    contents = _read_files(folder, manifest.files)
    states = []
    for name in manifest.members:
        with _naming(folder / name):
            state = validate(dict[str, JsonValue], contents[name])
            state.pop("metadata", None)  # DSPy's: versions of packages
            states.append(validate(ProgramState, state))
    with _naming(folder / LESSONS):
        lessons = validate(Lessons, contents.get(LESSONS, []))
    return Artifact(folder, manifest, states, lessons)


def _check_there(folder: Path) -> None:
    """Raise an error that tells what stands at a path, if it is plainly not the folder of an artifact."""
    if not os.path.exists(folder):  # which raises nothing, whatever the name
        raise QuestreeError(f"There is no folder {folder}: check the path.")
    if not os.path.isdir(folder):
        raise QuestreeError(f"{folder} is no folder; a saved program is one: name it, {MANIFEST} lies in it.")
    if not (folder / MANIFEST).exists() and (folder / "program" / MANIFEST).exists():
        raise QuestreeError(
            f"{folder} is the folder of a compilation; its program is in {folder / 'program'}: name that."
        )


def _read_files(folder: Path, checksums: dict[str, str]) -> dict[str, Any]:
    """Return the content of each file, which must have this checksum; all together have a bounded size."""
    contents, left = {}, LARGEST
    for name, checksum in checksums.items():
        with _naming(folder / name):
            content = read_bytes(folder / name, left)
            if hashlib.sha256(content).hexdigest() != checksum:
                raise ValueError("its checksum differs")
            contents[name] = parse_json(content)
            refuse_marks(contents[name])
            left -= len(content)
    return contents


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Turn what is wrong with a file into an error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise QuestreeError(f"{file} is missing; {_AGAIN}.") from None
    except (OSError, ValueError) as problem:
        raise QuestreeError(f"{file} is damaged, or sets what a file may not set ({problem}); {_AGAIN}.") from problem


def load(
    folder: str | Path | Artifact,
    *,
    retriever: Retriever | None = None,
    reader: Reader | None = None,
    duplicates: DuplicateCheck | None = None,
    allow_changed_signatures: bool = False,
    allow_code: Iterable[str] = (),
) -> Program:
    """Return a saved program, ready to be asked. It asks the configured LM, and never one that a file names.

    Args:
        folder: a path, or the address of one in MLflow: ``runs:/RUN_ID/program``, ``models:/NAME/VERSION``; or what
            `read_artifact` read there. On the hub, ``hf://user/name`` or ``hf://user/name@revision``.
        retriever: where passages come from. One with another fingerprint than at compile time gives a warning.
        reader: as at compile time; where None, the LM reads if it did, with the threshold of compile time.
        duplicates: for programs that skip repeated queries; by their words where None.
        allow_changed_signatures: load instructions and demonstrations although the code's signatures have
            changed since. The saved instructions then win over the code's.
        allow_code: programs of other packages that the artifact may name, as ``package:name``. Those that are
            installed as entry points need no leave.

    Raises:
        QuestreeError: if there is no artifact, a file of it is damaged or sets what no file may, a newer version wrote
            it, its program is unknown, or a signature or the reader is not what it was.
    """
    for name in allow_code:
        REGISTRY.allow(name)
    artifact = folder if isinstance(folder, Artifact) else read_artifact(folder)
    members = [_build(artifact, retriever, reader, duplicates) for _ in artifact.states]
    _check_reader(artifact, members[0])
    _check_signatures(artifact, members[0], allow_changed_signatures)
    for member, state, name in zip(members, artifact.states, artifact.manifest.members, strict=True):
        with _naming(artifact.folder / name):
            take_state(member, state)
    with _naming(artifact.folder / LESSONS):
        program = composed(artifact.manifest.form, members, artifact.lessons, artifact.manifest.k)
    _compare_retriever(artifact, program)
    return program


def _build(
    artifact: Artifact, retriever: Retriever | None, reader: Reader | None, duplicates: DuplicateCheck | None
) -> Program:
    """Return one member as the code makes it. An LM that reads has a prompt, so that each member has its own."""
    if artifact.manifest.reader == LMReader.name and (reader is None or isinstance(reader, LMReader)):
        own, saved = LMReader(), artifact.manifest.threshold
        own.threshold = reader.threshold if reader is not None else own.threshold if saved is None else saved
        reader = own
    program = artifact.manifest.program
    try:
        return build(program.name, program.settings, retriever=retriever, reader=reader, duplicates=duplicates)
    except QuestreeError as error:
        raise QuestreeError(f"{artifact.folder / MANIFEST}: {error}") from error


# What is checked against the code, and against what it is loaded with


def _check_reader(artifact: Artifact, program: Program) -> None:
    saved, given = artifact.manifest.reader, reader_name(program)
    if saved == given:
        return
    if saved is None:
        raise QuestreeError(
            f"{artifact.folder} was compiled without a reader and is loaded with {given!r}; give none (--reader lm)."
        )
    raise QuestreeError(
        f"{artifact.folder} was compiled with the reader {saved!r} and is loaded with "
        f"{repr(given) if given else 'none'}; give reader={saved!r} as it was (--reader)."
    )


def _check_signatures(artifact: Artifact, program: Program, allowed: bool) -> None:
    saved = {name: prompt.model_dump() for name, prompt in artifact.manifest.signatures.items()}
    current = signature_fingerprints(program)
    changed = [name for name in sorted({*saved, *current}) if saved.get(name) != current.get(name)]
    if not changed:
        return
    named = ", ".join(f"{(saved.get(name) or current[name])['signature']} ({name})" for name in changed)
    if saved.keys() != current.keys() or any(_other_fields(program, state) for state in artifact.states):
        raise QuestreeError(
            f"{artifact.folder} does not fit this version's {program.name}: it differs in {named}. Compile anew."
        )
    if not allowed:
        raise QuestreeError(
            f"Changed since {artifact.folder} was saved: {named}. Its instructions and demonstrations were made for "
            "the old signature. Compile anew, or use them all the same: --allow-changed-signatures, for a server the "
            "variable QUESTREE_ALLOW_CHANGED_SIGNATURES=1, in Python allow_changed_signatures=True."
        )
    logger.warning("Changed since %s was saved: %s; loaded all the same.", artifact.folder, named)


def _other_fields(program: Program, state: ProgramState) -> bool:
    """Return whether a prompt of the state has more or fewer fields than the program's: none can be put into it."""
    fields = {name: len(predictor.signature.fields) for name, predictor in program.named_predictors()}
    return any(name in fields and len(part.signature.fields) != fields[name] for name, part in state.items())


def _compare_retriever(artifact: Artifact, program: Program) -> None:
    saved, now = artifact.manifest.retriever, retriever_facts(program)
    if saved and now and saved.get("fingerprint") != now["fingerprint"]:
        logger.warning(
            "Compiled over the index %s (%s), now asked over %s (%s): scores may differ.",
            saved.get("name"), saved.get("fingerprint"), now["name"], now["fingerprint"],
        )  # fmt: skip
