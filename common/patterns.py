"""Regular expressions that a stranger may have written: the time of a match is bounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, TypeVar

import regex

from .errors import QuestreeError

T = TypeVar("T")

MOST_REPEATS = 10_000
"""All counts of a pattern multiplied, as in ``(a{9}b){9}``: `regex` makes room for each repetition."""
SECONDS = 2.0
"""Of a match. One that a person wrote takes less than a thousandth of that."""

_COUNTS = re.compile(r"\{(\d*)(?:,(\d*))?\}")


class EndlessPatternError(QuestreeError):
    """A pattern that was not matched in its time."""


def occurs(pattern: str, text: str) -> bool:
    """Return whether a pattern is found anywhere in a text.

    Raises:
        EndlessPatternError: if that takes too long.
        ValueError: if it is no pattern.
    """
    return bool(_matches(pattern, lambda one: one.search(text, timeout=SECONDS)))


def match(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a text from its first character; raise what `occurs` raises."""
    return bool(_matches(pattern, lambda one: one.match(text, timeout=SECONDS)))


def _matches(pattern: str, how: Callable[[Any], T]) -> T:
    try:
        return how(compiled(pattern))
    except TimeoutError:
        raise EndlessPatternError(
            f"The pattern {pattern[:100]!r} was not matched in {SECONDS:.0f} s; write it without repetitions of what "
            "is repeated itself."
        ) from None


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a regular expression, as Python's ``re`` has it, of a bounded size.

    Raises:
        ValueError: if it is none; says why.
    """
    repeats = prod(max(1, *(int(count or 1) for count in found.groups())) for found in _COUNTS.finditer(pattern))
    if repeats > MOST_REPEATS:
        raise ValueError(f"its counts of repetitions make more than {MOST_REPEATS:,} together")
    try:
        re.compile(pattern)
        return regex.compile(pattern)
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None
