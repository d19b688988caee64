"""A program's settings, varied one or several at a time: what an ablation compares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from ..common.errors import QuestreeError
from .registry import kind_named


def variants(name: str, over: Sequence[str], values: Sequence[Any] | None = None) -> dict[str, dict[str, Any]]:
    """Settings to compare, by a label such as ``expansion=cot``; the program's defaults come first.

    Args:
        name: of the program.
        over: its settings to vary; of several, every combination.
        values: of the one setting, where its type does not list them all (a number, say).

    Raises:
        QuestreeError: if there is no such program or setting, or the values of one cannot be told from its type.
    """
    fields = kind_named(name).Settings.model_fields
    unknown = [setting for setting in over if setting not in fields]
    if unknown or not over:
        known = ", ".join(fields)
        raise QuestreeError(f"{name} has no setting {', '.join(unknown) or 'named'}; vary one of: {known}.")
    if values and len(over) > 1:
        raise QuestreeError("Values can be given for one setting at a time.")
    choices = [_default_first(_choices(setting, fields[setting], values), fields[setting].default) for setting in over]
    combinations = [dict(zip(over, combination, strict=True)) for combination in product(*choices)]
    return {", ".join(f"{key}={_told(value)}" for key, value in one.items()): one for one in combinations}


def _choices(setting: str, field: Any, values: Sequence[Any] | None) -> list[Any]:
    choices = list(values or ()) or _listed(field.annotation)
    if not choices:
        raise QuestreeError(f"{setting} can be anything: say which values to compare, for example --value 1 --value 2.")
    return choices


def _listed(annotation: Any) -> list[Any]:
    """All values of a type that lists them: a bool, a Literal, or a union of such."""
    if annotation is bool:
        return [True, False]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        parts = [[None] if part is type(None) else _listed(part) for part in get_args(annotation)]
        return [value for part in parts for value in part] if all(parts) else []
    return []


def _default_first(choices: list[Any], default: Any) -> list[Any]:
    return sorted(choices, key=lambda value: value != default)


def _told(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
