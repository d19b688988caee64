"""The artifact: a compiled program saved as a folder with one JSON file, ``questree.json``.

It says what the program is, and holds the state of its predictors. Loading it runs no code, unpickles nothing, opens no
other file, and accepts only what `programs.states` allows.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, JsonValue

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..common.json_files import validate
from ..common.manifests import ManifestKind, checksum_of
from ..evaluation.identity import lm_facts, reader_name, retriever_facts, signature_fingerprints, versions
from ..evaluation.tracking_store import bound_mlflow, check_exists, without_password
from ..lm.failure import first_line
from ..programs import REGISTRY, Program, build, build_kind, saved_name
from ..programs.modules.reader import LMReader
from ..programs.states import CompiledState, compiled_state, members_of, to_json
from ..retrieval import DuplicateCheck, Reader, Retriever
from . import hub

FORMAT = 1
MANIFEST = "questree.json"

_KIND = ManifestKind("saved program", FORMAT, "save or compile the program again", sealed=True)

logger = logging.getLogger(__name__)


class SavedProgram(BaseModel, frozen=True, extra="forbid"):
    """A program's name, and its settings."""

    name: str
    settings: dict[str, JsonValue]


class SavedPrompt(BaseModel, frozen=True, extra="forbid"):
    """A signature as the code had it: its name, and a fingerprint of all that it puts into a prompt."""

    signature: str
    fingerprint: str


class Manifest(BaseModel, frozen=True, extra="allow"):
    """The content of an artifact: facts about the program, and the state of its predictors.

    Attributes:
        lm: facts about the LM. They are shown and never used.
        retriever: name, fingerprint and folder's name of the index that it was compiled over; empty for a program
            without one.
        reader: the reader's name, or None if the program has none.
        state: prompts and demonstrations of the program, or of the members that it is made of.
    """

    format: int
    program: SavedProgram
    signatures: dict[str, SavedPrompt]
    lm: dict[str, JsonValue]
    retriever: dict[str, str]
    reader: str | None = None
    threshold: float | None = None
    versions: dict[str, str]
    state: CompiledState
    checksum: str

    def facts(self) -> dict[str, Any]:
        """Return what is shown to a person, as JSON: all but state, fingerprints and checksum."""
        return self.model_dump(mode="json", exclude_unset=True, exclude={"signatures", "state", "checksum"})


@dataclass(frozen=True)
class Artifact:
    """An artifact that was read and checked. Its program is not built yet.

    Attributes:
        folder: the place that it was read from, a folder or an address in MLflow or on the hub.
    """

    folder: Path
    manifest: Manifest


def save(program: Program, folder: str | Path, **facts: Any) -> Path:
    """Save a program, all of it or nothing; replace an artifact that is there.

    Args:
        program: compiled or not, or several composed. Its code is named, and not stored.
        folder: made, if it is not there.
        facts: what else to store about it, as JSON: optimizer, scores, task …

    Raises:
        QuestreeError: if the folder holds something else, cannot be written, or a demonstration is not JSON.
    """
    target = Path(folder)
    try:
        if target.exists() and not (target / MANIFEST).exists() and any(target.iterdir()):
            raise QuestreeError(f"{target} is not empty and holds no saved program; name another folder.")
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QuestreeError(f"Cannot save the program to {target}: {error.strerror}.") from error
    write_atomically(target / MANIFEST, f"{to_json(_content(program, facts))}\n")
    return target


def code_name(program: Program) -> str:
    """Return the name by which the code of a program is found again; of one made of several, that of its members.

    Raises:
        QuestreeError: it has none.
    """
    return saved_name(type(members_of(program)[0]))


def _content(program: Program, facts: dict[str, Any]) -> dict[str, Any]:
    first, by_lm = members_of(program)[0], reader_name(program) == LMReader.name
    # an LM that reads is a module with a prompt of its own, which may have been compiled
    reader = LMReader() if by_lm else getattr(first, "reader", None)
    settings = program.settings.model_dump(mode="json")
    as_coded = build_kind(type(first), settings, retriever=program.retriever, reader=reader)
    content: dict[str, Any] = {
        "format": FORMAT,
        "program": {"name": code_name(program), "settings": settings},
        "signatures": signature_fingerprints(as_coded),
        "lm": lm_facts(),
        "retriever": _index_facts(program),
        "reader": reader_name(program),
        **({"threshold": program.reader.threshold} if by_lm else {}),
        "versions": versions(),
        **facts,
        "state": compiled_state(program).model_dump(mode="json", exclude_unset=True),
    }
    content = json.loads(to_json(content))
    return content | {"checksum": checksum_of(content)}


def _index_facts(program: Program) -> dict[str, str]:
    """Return the facts about the program's index, with its folder's name, which is not part of a run's identity."""
    folder = program.retriever.folder if program.retriever is not None else ""
    return retriever_facts(program) | ({"folder": folder} if folder else {})


def in_words(index: Mapping[str, str]) -> str:
    """Describe an index in words: the name of its folder, if that is known, its kind and its fingerprint."""
    known = ", ".join(one for name, one in index.items() if name != "folder")
    return f"{index['folder']} ({known})" if "folder" in index else known or "none"


def read_artifact(place: str | Path) -> Artifact:
    """Read and check an artifact.

    Args:
        place: a folder, or the address of one in MLflow or on the hub, which is trusted no more than any other folder.

    Raises:
        QuestreeError: if there is none, or it is damaged or sets what a file must not set.
    """
    on_hub = str(place).startswith(hub.PREFIX)
    if not on_hub and not str(place).startswith(("runs:/", "models:/", "mlflow-artifacts:/")):
        return _read(Path(place))
    with TemporaryDirectory() as temporary:
        if on_hub:
            folder, named = Path(temporary), str(place)
            place = hub.fetch_artifact(named, folder)
            if place != named:
                logger.warning("%s is %s today; name the latter to get the same program again.", named, place)
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
    bound_mlflow()
    check_exists(mlflow.get_registry_uri() if address.startswith("models:/") else mlflow.get_tracking_uri())
    try:
        found = Path(mlflow.artifacts.download_artifacts(artifact_uri=address, dst_path=target))
    except Exception as error:  # MLflow checks little of a server's reply, and may raise any error over the rest
        raise QuestreeError(
            f"Cannot fetch {address} from {without_password(mlflow.get_tracking_uri())}: "
            f"{first_line(error).rstrip('.')}. Check the address, and the tracking URI (--tracking-uri)."
        ) from None
    manifests = [found / MANIFEST] if (found / MANIFEST).exists() else sorted(found.rglob(MANIFEST))
    if len(manifests) != 1:
        raise QuestreeError(f"{address} holds {len(manifests)} saved programs, not one; give the path to it.")
    return manifests[0].parent


def _read(folder: Path) -> Artifact:
    if not os.path.isdir(folder):  # raises no error, whatever the name
        raise QuestreeError(f"There is no folder {folder}: name the folder of a saved program, with {MANIFEST} in it.")
    if not (folder / MANIFEST).exists() and (folder / "program" / MANIFEST).exists():
        raise QuestreeError(
            f"{folder} is the folder of a compilation; its program is in {folder / 'program'}: name that."
        )
    return Artifact(folder, _KIND.read(folder / MANIFEST, lambda content: validate(Manifest, content)))


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
        reader: as at compile time. Where None, the LM reads if it did at compile time, with the same threshold.
        duplicates: for programs that skip repeated queries; where None, queries are compared by their words.
        allow_changed_signatures: load instructions and demonstrations although the code's signatures have
            changed since. The saved instructions then win over the code's.
        allow_code: programs of other packages that the artifact may name, as ``package:name``. Those that are
            installed as entry points need no leave.

    Raises:
        QuestreeError: if there is no artifact, it is damaged or sets what a file must not set, a newer version wrote
            it, its program is unknown, or a signature or the reader is not what it was.
    """
    for name in allow_code:
        REGISTRY.allow(name)
    artifact = folder if isinstance(folder, Artifact) else read_artifact(folder)
    manifest, file = artifact.manifest, artifact.folder / MANIFEST

    def make() -> Program:
        """Return a new member, not compiled. An LM as reader has a prompt, so each member gets a reader of its own."""
        own = reader
        if manifest.reader == LMReader.name and (reader is None or isinstance(reader, LMReader)):
            own = LMReader()
            given = manifest.threshold if reader is None else reader.threshold
            own.threshold = own.threshold if given is None else given
        name, settings = manifest.program.name, manifest.program.settings
        return build(name, settings, retriever=retriever, reader=own, duplicates=duplicates)

    try:
        as_coded = make()
    except QuestreeError as error:
        raise QuestreeError(f"{file}: {error}") from error
    _check_reader(artifact, as_coded)
    _check_signatures(artifact, as_coded, allow_changed_signatures)
    try:
        program = manifest.state.program(make)
    except ValueError as problem:
        raise QuestreeError(f"{file} does not fit its program ({problem}); {_KIND.again}.") from problem
    saved, now = manifest.retriever, _index_facts(program)
    if saved and now and saved.get("fingerprint") != now["fingerprint"]:
        logger.warning(
            "Compiled over the index %s, now asked over %s: scores may differ.", in_words(saved), in_words(now)
        )
    return program


def _check_reader(artifact: Artifact, program: Program) -> None:
    saved, given = artifact.manifest.reader, reader_name(program)
    if saved != given:
        raise QuestreeError(
            f"{artifact.folder} was compiled with the reader {saved or 'none'} and is loaded with {given or 'none'}; "
            f"give {saved or 'none'} (--reader)."
        )


def _check_signatures(artifact: Artifact, program: Program, allowed: bool) -> None:
    saved = {name: prompt.model_dump() for name, prompt in artifact.manifest.signatures.items()}
    current = signature_fingerprints(program)
    changed = [name for name in sorted({*saved, *current}) if saved.get(name) != current.get(name)]
    if not changed:
        return
    named = ", ".join(f"{(saved.get(name) or current[name])['signature']} ({name})" for name in changed)
    if not allowed:
        raise QuestreeError(
            f"Changed since {artifact.folder} was saved: {named}. Its instructions and demonstrations were made for "
            "the old signature. Compile anew, or use them all the same: --allow-changed-signatures, for a server the "
            "variable QUESTREE_ALLOW_CHANGED_SIGNATURES=1, in Python allow_changed_signatures=True."
        )
    logger.warning("Changed since %s was saved: %s; loaded all the same.", artifact.folder, named)
