"""Questree answers questions that need several facts, shows each step, and cites the passage behind it.

program = questree.load("runs:/…/program", retriever="indexes/wiki")
prediction = program(question="…")
prediction.answer, prediction.final_content, prediction.references, prediction.tree
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# DSPy's LM clients fetch a price list when they are imported, unless told not to.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# MLflow draws a bar for every few kilobytes that it fetches.
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

if TYPE_CHECKING:
    from .common.errors import QuestreeError as QuestreeError
    from .data import load_task as load_task
    from .evaluation import evaluate as evaluate
    from .front import load as load
    from .front import program as program
    from .optimize import compile as compile
    from .retrieval import Passage as Passage
    from .retrieval import build_index as build_index
    from .retrieval import load_index as load_index

_HOMES = {
    "Passage": ".retrieval",
    "QuestreeError": ".common.errors",
    "build_index": ".retrieval",
    "compile": ".optimize",
    "evaluate": ".evaluation",
    "load": ".front",
    "load_index": ".retrieval",
    "load_task": ".data",
    "program": ".front",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import on first use: the command line answers before DSPy is loaded."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
