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

if TYPE_CHECKING:
    from .front import load, load_index, program
    from .optimize import compile, evaluate
    from .retrieval import Passage, build_index

_HOMES = {
    "load": ".front",
    "load_index": ".retrieval",
    "program": ".front",
    "compile": ".optimize",
    "evaluate": ".optimize",
    "load_task": ".data",
    "build_index": ".retrieval",
    "Passage": ".retrieval",
    "QuestreeError": ".retrieval.errors",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import on first use: the command line answers before DSPy is loaded."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
