"""Questree answers questions that need several facts, shows each step, and cites the passage behind it.

program = questree.load("runs:/…/program", retriever="indexes/wiki")
prediction = program(question="…")
prediction.answer, prediction.final_content, prediction.references, prediction.tree
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.lazy import exported, lazily

# DSPy's LM clients fetch a price list when they are imported, unless told not to.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# MLflow draws a bar for every few kilobytes that it fetches.
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

if TYPE_CHECKING:
    from .common.errors import QuestreeError as QuestreeError
    from .data import load_task as load_task
    from .evaluation import evaluate as evaluate
    from .evaluation.genai import mlflow_dataset as mlflow_dataset
    from .evaluation.genai import mlflow_scorer as mlflow_scorer
    from .optimize import compile as compile
    from .programs import Program
    from .programs import stream as stream
    from .retrieval import DuplicateCheck, Reader, Retriever
    from .retrieval import Passage as Passage
    from .retrieval import build_index as build_index

__getattr__ = lazily(__name__)  # the command line answers before DSPy is loaded


def __dir__() -> list[str]:
    """Return the public names."""
    return [*exported(__name__), "load", "load_index", "program"]


def program(
    name: str,
    *,
    retriever: Retriever | str | Path | None = None,
    reader: Reader | None = None,
    duplicates: DuplicateCheck | None = None,
    **settings: Any,
) -> Program:
    """Return an uncompiled program.

    Args:
        name: ``searchain`` for example; or one of another package: its entry point's name, or ``package:name``.
        retriever: one, or its name: an index's folder, ``http://host:port`` of a retriever server, or several
            joined by ``+`` (see `questree.retrieval.open_retriever`).
        reader: for programs that read spans; the LM reads where None.
        duplicates: for programs that skip repeated queries; by their words where None.
        settings: of the program, by the names in its ``Settings``.
    """
    from .programs import allow, build

    allow(name, settings)
    return build(name, settings, retriever=_opened(retriever), reader=reader, duplicates=duplicates)


def load(
    source: str | Path,
    *,
    retriever: Retriever | str | Path | None = None,
    reader: Reader | None = None,
    duplicates: DuplicateCheck | None = None,
    allow_changed_signatures: bool = False,
    allow_code: Iterable[str] = (),
) -> Program:
    """Return a compiled program, ready to be called. Nothing in the artifact is run, and no address in it is used.

    Args:
        source: the folder of an artifact, ``runs:/…`` or ``models:/…`` of MLflow, or ``hf://user/name@revision``.
        retriever: as for `program`.
        reader: as for `program`.
        duplicates: as for `program`.
        allow_changed_signatures: load although prompts in the code have changed since it was compiled.
        allow_code: programs of other packages that the artifact may name, as ``package:name``. Those that are
            installed as entry points need no leave.

    Raises:
        QuestreeError: there is no artifact, it is damaged or newer, or a signature has changed since.
    """
    from .optimize import load as load_artifact

    return load_artifact(
        source,
        retriever=_opened(retriever),
        reader=reader,
        duplicates=duplicates,
        allow_changed_signatures=allow_changed_signatures,
        allow_code=allow_code,
    )


def load_index(name: str | Path, **how: Any) -> Retriever:
    """Return the retriever of an index, or of whatever else ``--retriever`` takes.

    Args:
        name: as for `questree.retrieval.open_retriever`: an index's folder, ``linked:FOLDER``, an address, a package's,
            or several joined by ``+``.
        how: of a folder: ``corpus``, ``checkpoint`` and ``full_check``, as for `questree.retrieval.load_index`.

    Raises:
        QuestreeError: there is none, or it must not be searched.
    """
    from .retrieval import load_index as load_folder
    from .retrieval import open_retriever

    return load_folder(name, **how) if how else open_retriever(name)


def _opened(retriever: Retriever | str | Path | None) -> Retriever | None:
    if not isinstance(retriever, (str, Path)):
        return retriever
    from .retrieval import open_retriever

    return open_retriever(retriever)
