"""What a kind of index is. The kinds there are: ``kinds.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...common.errors import QuestreeError
from ...common.names import unknown_name
from ..base import IndexRetriever
from .manifest import CheckpointRecord, Manifest
from .store import PassageStore


@dataclass(frozen=True)
class Progress:
    """How far a build has come.

    Attributes:
        stage: what is being done, as a person would say it.
        done: passages (or whatever the stage counts) that are done.
        total: of how many; 0 where that is not known.
        kept: of those done, how many an earlier, interrupted run did.
        bytes: what the finished index will take on disk; 0 where that is not known.
    """

    stage: str
    done: int
    total: int
    kept: int = 0
    bytes: int = 0


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Order:
    """What a kind is asked to write.

    Attributes:
        folder: the index under construction; it holds the passages already, and what an interrupted run left.
        passages: those passages.
        settings: an instance of the kind's settings, or None for the defaults.
        checkpoint: of its encoder, by name or folder; None for the kind's default.
        precision: in which the encoder computes.
        devices: on which the encoder computes, a process each; none: in this process, on the GPU where there is one.
        report: to be told how far it is.
    """

    folder: Path
    passages: PassageStore
    settings: Any = None
    checkpoint: str | Path | None = None
    precision: Any = "auto"
    devices: Sequence[str] = ()
    report: Report = lambda _: None


@dataclass(frozen=True)
class Written:
    """What the manifest says of an index beside its corpus: it is all that ``load`` is given."""

    settings: dict[str, Any]
    checkpoint: CheckpointRecord | None = None
    filled: int = 0
    """Passages that fill the encoder's window."""


@dataclass(frozen=True)
class IndexKind:
    """A kind of index: how it is written and how it is loaded.

    Attributes:
        name: as in ``--kind`` and in the manifest.
        description: one line for people.
        write: puts the index of ``Order.passages`` into ``Order.folder``. May be called in a folder in which it was
            interrupted before, and leaves the bytes that an uninterrupted call leaves.
        load: from folder, manifest, passages, and the checkpoint's present name where that changed.
        settings: the class of its settings; None where it has none.
        work: the folder, in the index under construction, of finished work that outlives an interruption.
        keeps_work: whether the finished index holds that folder.
        again: from an index's manifest, how it was ordered: the settings to write a larger one alike.
        cannot_add: why passages cannot be added to an index of this kind; empty where adding gives exactly what
            building anew gives.
    """

    name: str
    description: str
    write: Callable[[Order], Written]
    load: Callable[[Path, Manifest, PassageStore, str | Path | None], IndexRetriever]
    settings: type[Any] | None = None
    work: str = ""
    keeps_work: bool = True
    again: Callable[[Manifest], dict[str, Any]] = lambda _: {}
    cannot_add: str = ""

    def settings_of(self, given: Mapping[str, Any]) -> Any:
        """The settings of these names and values; None, for the defaults, where none are given.

        Raises:
            QuestreeError: it has no such setting, or a value does not fit.
        """
        if not given:
            return None
        if self.settings is None:
            raise QuestreeError(f"An index of kind {self.name} has no settings.")
        known = [field.name for field in fields(self.settings)]
        if unknown := [name for name in given if name not in known]:
            raise QuestreeError(unknown_name(f"setting of {self.name}", unknown[0], known))
        try:
            return TypeAdapter(self.settings).validate_python(dict(given))
        except ValidationError as error:
            fault = error.errors()[0]
            raise QuestreeError(f"{fault['loc'][0]}={fault['input']!r} does not fit: {fault['msg']}.") from None
