"""Placeholders in a subquestion: ``#n``, or ``<n>``, stands for the answer of the n-th subquestion."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLACEHOLDER = re.compile(r"#(\d{1,9})|<(\d{1,9})>")  # an LM may write digits without end
_SIGN = re.compile(r"#(?=\d)")


def numbers_in(text: str) -> list[int]:
    """Return the numbers of the placeholders, in order."""
    return [int(found[found.lastindex or 0]) for found in _PLACEHOLDER.finditer(text)]


def fill_in(text: str, answers: Sequence[str | None], missing: str | None = None) -> str:
    """Return the text with each placeholder replaced by its answer.

    Args:
        text: a subquestion.
        answers: of the earlier subquestions; ``#1`` is the first.
        missing: what replaces a placeholder that has no answer; None leaves it as it is.
    """

    def answer(found: re.Match[str]) -> str:
        number = int(found[found.lastindex or 0])
        known = answers[number - 1] if 1 <= number <= len(answers) else None
        return known or (found[0] if missing is None else missing)

    return _PLACEHOLDER.sub(answer, text)


def without_placeholders(question: str) -> str:
    """Return the question with ``No. 1`` for ``#1`` (the #1 hit): in a subquestion, ``#1`` stands for an answer."""
    return _SIGN.sub("No. ", question)


def unanswered(query: str) -> str:
    """Return what stands in a later query for the answer of a query that has none."""
    return f"(the answer to: {query.rstrip(' ?')})"
