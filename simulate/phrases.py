"""Queries and facts in words: a query with or without an earlier answer in it, and a fact as a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..common.placeholders import fill_in
from ..metrics import normalise

_DESCRIPTIONS = [
    (re.compile(r"^what (?:is|was|are|were) (.+)$", re.IGNORECASE), r"\1"),
    (re.compile(r"^who (?:is|was) (the .+)$", re.IGNORECASE), r"\1"),
    (re.compile(r"^who (.+)$", re.IGNORECASE), r"the one who \1"),
    (re.compile(r"^where (is|was) (.+?)( first|) (\w+)$", re.IGNORECASE), r"the place where \2 \1\3 \4"),
    (re.compile(r"^where did (.+) (die|live)$", re.IGNORECASE), r"the place where \1 \2d"),
    (re.compile(r"^where (?:did|does) (.+)$", re.IGNORECASE), r"the place of \1"),
    (re.compile(r"^in (?:which|what) ([\w -]+?) (is|was) (.+?)( first|) (\w+)$", re.I), r"the \1 in which \3 \2\4 \5"),
    (re.compile(r"^of (?:which|what) ([\w -]+?) is (.+)$", re.IGNORECASE), r"the \1 of which \2 is"),
    (re.compile(r"^(?:which|what) (\w+) (.+)$", re.IGNORECASE), r"the \1 that \2"),
]
_MARKS = r"(?:\s?\[\d+\])*"
_END = r"(?<!\b[A-Z])(?<!\bSt)(?<!\bDr)(?<!\bMr)\.(?=\s|$)"  # a full stop, and not one after an initial


def describe(query: str) -> str:
    """Return what a query asks for as a noun phrase: how a model writes on without the answer."""
    bare = query.strip().rstrip("?").strip()
    for pattern, phrase in _DESCRIPTIONS:
        if pattern.match(bare):
            return pattern.sub(phrase, bare)
    return f"the answer to “{bare}”"


def write_out(templates: Sequence[str], answers: Sequence[str | None], index: int) -> str:
    """Return query ``index`` (from 0) with earlier answers filled in, and described where there is none."""
    fillings: list[str | None] = []
    for earlier in range(index):
        answer = answers[earlier] if earlier < len(answers) else None
        fillings.append(answer or describe(fill_in(templates[earlier], fillings)))
    return fill_in(templates[index], fillings)


def write_fact(query: str, answer: str | None, reference: int | None = None) -> str:
    """Write a fact as a sentence, with the mark of its passage if it has one."""
    if not answer:
        return f"The question “{query}” stays open."
    return f"The answer to “{query}” is {answer.rstrip('.')}{f' [{reference}]' if reference else ''}."


def find_stated(query: str, texts: Iterable[str]) -> str | None:
    """Return the answer to the query that the last of the texts states, if it is stated as `write_fact` does it."""
    pattern = re.compile(rf"answer to “{re.escape(query.strip())}” is (.+?){_MARKS}{_END}", re.DOTALL)
    found = (pattern.search(text) for text in reversed(list(texts)))
    return next((one[1] for one in found if one), None)


def mentions(query: str, texts: Iterable[str]) -> bool:
    """Tell whether one of the texts is about the query, answered or not."""
    return any(normalise(query) in normalise(text) for text in texts)
