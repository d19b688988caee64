"""A program from its name, its parts and its settings."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from pydantic import BaseModel, ValidationError

from ..retrieval.errors import QuestreeError
from .program import Program
from .registry import PROGRAMS


def build(name: str, settings: dict[str, Any], **parts: Any) -> Program:
    """The program of this name as the code makes it, uncompiled.

    Args:
        name: one of `PROGRAMS`.
        settings: by the names in its ``Settings``; what is not given has its default.
        parts: ``retriever``, ``reader``, ``duplicates`` …; those that this kind of program does not take are left out.

    Raises:
        QuestreeError: if there is no such program or setting, or a value does not fit; names what there is.
    """
    kind = kind_named(name)
    taken = inspect.signature(kind.__init__).parameters
    accepted = {part: value for part, value in parts.items() if part in taken}
    return kind(**accepted, settings=_checked(kind, settings))


def kind_named(name: str) -> type[Program]:
    """The class of this name.

    Raises:
        QuestreeError: if there is none; names those there are, and the nearest.
    """
    if name not in PROGRAMS:
        close = difflib.get_close_matches(name, PROGRAMS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise QuestreeError(f"There is no program {name!r}.{hint} There are: {', '.join(PROGRAMS)}.")
    return PROGRAMS[name]


def _checked(kind: type[Program], settings: dict[str, Any]) -> BaseModel:
    try:
        return kind.Settings(**settings)
    except ValidationError as error:
        problem = error.errors()[0]
        known = ", ".join(f"{name} ({field.default})" for name, field in kind.Settings.model_fields.items())
        name = ".".join(map(str, problem["loc"]))
        raise QuestreeError(
            f"{kind.name}: {name}={problem['input']!r}: {problem['msg']}. Its settings are: {known}."
        ) from None
