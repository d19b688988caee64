"""The front door: programs by name, and compiled ones from where they were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .programs import Program, build
from .retrieval import DuplicateCheck, Reader, Retriever, open_retriever


def program(
    name: str,
    *,
    retriever: Retriever | str | Path | None = None,
    reader: Reader | None = None,
    duplicates: DuplicateCheck | None = None,
    **settings: Any,
) -> Program:
    """An uncompiled program.

    Args:
        name: as registered, ``searchain`` for example.
        retriever: one, or its name: an index's folder, ``http://host:port`` of a retriever server, or several
            joined by ``+`` (see `questree.retrieval.open_retriever`).
        reader: for programs that read spans; the LM reads where None.
        duplicates: for programs that skip repeated queries; by their words where None.
        settings: of the program, by the names in its ``Settings``.

    Raises:
        QuestreeError: if there is no such program or setting, or a value does not fit; names what there is.
    """
    return build(name, settings, retriever=_opened(retriever), reader=reader, duplicates=duplicates)


def load(
    source: str | Path,
    *,
    retriever: Retriever | str | Path | None = None,
    reader: Reader | None = None,
    duplicates: DuplicateCheck | None = None,
    allow_changed_signatures: bool = False,
) -> Program:
    """A compiled program, ready to be called. Nothing in the artifact is executed, and no address in it is used.

    Args:
        source: the folder of an artifact, or ``runs:/…`` or ``models:/…`` of MLflow.
        retriever, reader, duplicates: as for `program`.
        allow_changed_signatures: load although prompts in the code have changed since it was compiled.

    Raises:
        QuestreeError: if there is no artifact, it is damaged or newer, or a signature has changed since.
    """
    from .optimize import load as load_artifact

    return load_artifact(
        source,
        retriever=_opened(retriever),
        reader=reader,
        duplicates=duplicates,
        allow_changed_signatures=allow_changed_signatures,
    )


def _opened(retriever: Retriever | str | Path | None) -> Retriever | None:
    return open_retriever(retriever) if isinstance(retriever, (str, Path)) else retriever
