"""What a run is about, written down in its folder: a folder goes on only with the same."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..common.json_files import parse_json, read_bytes, validate
from ..common.manifests import ManifestKind

FORMAT = 1
_PROMPTS = "compiled state"  # a digest, which tells nobody anything


def claim(manifest: Path, identity: dict[str, Any], ignored: Collection[str] = (), added: Collection[str] = ()) -> None:
    """Write down what the run is about; if that was done before, compare.

    Args:
        manifest: the file.
        identity: what the run is about.
        ignored: keys that may differ.
        added: keys that manifests of older versions lack; where they stand, they are compared.

    Raises:
        QuestreeError: if it is another run; names what differs. If another version wrote it, or it is damaged.
    """
    identity = {"format": FORMAT, **json.loads(json.dumps(identity))}
    if not manifest.exists():
        write_atomically(manifest, json.dumps(identity, indent=2, ensure_ascii=False))
        return
    there = read_manifest(manifest)
    compared = {*there, *identity} - {*ignored} - ({*added} - there.keys())
    differing = sorted(key for key in compared if there.get(key) != identity.get(key))
    told = [f"{key} was {there.get(key)!r} and is now {identity.get(key)!r}" for key in differing if key != _PROMPTS]
    way = "Go on with what it was, or name another folder."
    if _PROMPTS in differing and "program" not in differing:  # the prompts of another program are others anyway
        prompts = f"the prompts or demonstrations of {identity.get('program')} have changed since"
        told = [prompts + _writer(manifest.parent), *told]
        way = "Answers to other prompts are not mixed: name another folder."
    if told:
        raise QuestreeError(f"{manifest.parent} holds another run: {'; '.join(told)}. {way}")


def _writer(folder: Path) -> str:
    """Return which version wrote a run, or the first part of a compilation, in brackets; nothing if it did not tell."""
    for file in (folder / "surroundings.json", folder / "before" / "surroundings.json"):
        with suppress(OSError, ValueError, TypeError, KeyError):
            return f" (questree {parse_json(read_bytes(file))['versions']['questree']} wrote it)"
    return ""


def read_manifest(manifest: Path) -> dict[str, Any]:
    """Return what a run is about.

    Raises:
        QuestreeError: if there is none, it is damaged, or another version wrote it.
    """
    kind = ManifestKind("run", FORMAT, "delete it and run again, or name another folder")
    return kind.read(manifest, lambda content: validate(_Identity, content).model_dump(exclude_unset=True))


class _Identity(BaseModel):
    """What a run is about, as far as something is done with it; the rest is compared, and shown."""

    model_config = ConfigDict(extra="allow")

    lm: dict[str, Any] = {}
    retriever: dict[str, Any] | None = None
    metrics: list[str] = []
