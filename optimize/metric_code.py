"""What a metric of the user's own does, as a digest: a program that was compiled for other code is another program."""

from __future__ import annotations

from functools import partial
from inspect import getattr_static, getclosurevars, unwrap
from types import CodeType, FunctionType
from typing import Any

from ..evaluation.identity import digest
from ..evaluation.records import ScoreFunction, keeps_scores


def metric_code(metric: ScoreFunction) -> str | None:
    """Return a digest of a metric's code, and of the functions and constants that it uses from its own module.

    Lists, objects and what other modules hold do not count: they need not be the same in the next process. Another
    version of Python may compile the same text to other code.

    Returns:
        None for a metric of ours, which its name tells.
    """
    return None if keeps_scores(metric) else digest(_told(metric, set()))


def _told(value: Any, seen: set[Any]) -> Any:
    """Return, as JSON, what of a value is the same in another process."""
    if isinstance(value, (str, bytes, int, float, type(None))):
        return repr(value)
    if isinstance(value, (tuple, frozenset)):
        told = [_told(one, seen) for one in value]
        return told if isinstance(value, tuple) else sorted(map(str, told))
    if isinstance(value, CodeType):
        return [value.co_code.hex(), list(value.co_names), [_told(one, seen) for one in value.co_consts]]
    if isinstance(value, partial):
        return [_told(one, seen) for one in (value.func, value.args, *value.keywords.items())]
    if not isinstance(value, FunctionType):
        held = (getattr(value, name, None) for name in ("function", "__func__"))  # another package's; a method's
        value = next(filter(None, held), getattr_static(type(value), "__call__", None))
    return _function(unwrap(value), seen) if isinstance(value, FunctionType) else None


def _function(function: FunctionType, seen: set[Any]) -> Any:
    if function in seen:  # it calls itself
        return None
    seen.add(function)
    used = getclosurevars(function)
    own = {
        name: one
        for name, one in {**used.globals, **used.nonlocals}.items()
        if getattr(one, "__module__", function.__module__) == function.__module__
    }
    return [_told(one, seen) for one in (function.__code__, function.__defaults__, *sorted(own.items()))]
