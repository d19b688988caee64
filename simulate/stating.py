"""Facts as the simulated model puts them into sentences, and how it finds them there again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..metrics import normalise

_MARKS = r"(?:\s?\[\d+\])*"
_END = r"(?<!\b[A-Z])(?<!\bSt)(?<!\bDr)(?<!\bMr)\.(?=\s|$)"  # a full stop, and not one after an initial
_OPEN = re.compile(r"^The question “(.+)” stays open\.$")
_STATEMENT = re.compile(rf"^(.+?): (.+?){_MARKS}\.?$", re.DOTALL)


def statement(query: str, answer: str | None, reference: int | None = None) -> str:
    """The fact as a sentence, with the mark of its passage if it has one."""
    if not answer:
        return f"The question “{query}” stays open."
    mark = f" [{reference}]" if reference else ""
    return f"{query.rstrip('?')}: {answer.rstrip('.')}{mark}."


def stated(query: str, texts: Iterable[str]) -> str | None:
    """The answer that one of the texts states to the query in the model's own way, the last one first."""
    pattern = re.compile(rf"{re.escape(query.strip().rstrip('?'))}: (.+?){_MARKS}{_END}", re.DOTALL)
    found = (pattern.search(text) for text in reversed(list(texts)))
    return next((one[1] for one in found if one), None)


def asked_in(sentence: str) -> str:
    """The query that the sentence answers or leaves open; the sentence itself where it is put otherwise."""
    left_open = _OPEN.match(sentence.strip())
    if left_open:
        return left_open[1]
    found = _STATEMENT.match(sentence.strip())
    return f"{found[1]}?" if found else sentence.strip()


def mentions(query: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts is about the query, answered or not."""
    return any(normalise(query) in normalise(text) for text in texts)
