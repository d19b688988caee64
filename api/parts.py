"""From the names that a user types to the parts that a program is made of."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .retrieval.errors import QuestreeError
from .settings import RunSettings

if TYPE_CHECKING:
    import dspy

    from .data import Task
    from .programs import Program
    from .retrieval import DuplicateCheck, Reader, Retriever


def build_task(settings: RunSettings) -> Task:
    """The task that the settings name."""
    from .data import load_task

    return load_task(settings.task, limit=settings.limit, seed=settings.seed)
