"""Queries written out: what an LM puts where an earlier answer goes, if it has one or not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..common.placeholders import fill_in

_DESCRIPTIONS = [
    (re.compile(r"^what (?:is|was|are|were) (.+)$", re.IGNORECASE), r"\1"),
    (re.compile(r"^who (?:is|was) (the .+)$", re.IGNORECASE), r"\1"),
    (re.compile(r"^who (.+)$", re.IGNORECASE), r"the one who \1"),
    (re.compile(r"^where (is|was) (.+) (\w+)$", re.IGNORECASE), r"the place where \2 \1 \3"),
    (re.compile(r"^where (?:did|does) (.+)$", re.IGNORECASE), r"the place of \1"),
    (re.compile(r"^in (?:which|what) ([\w -]+?) (is|was) (.+) (\w+)$", re.IGNORECASE), r"the \1 in which \3 \2 \4"),
    (re.compile(r"^of (?:which|what) ([\w -]+?) is (.+)$", re.IGNORECASE), r"the \1 of which \2 is"),
    (re.compile(r"^(?:which|what) (\w+) (.+)$", re.IGNORECASE), r"the \1 that \2"),
]


def described(query: str) -> str:
    """What a query asks for, as a noun phrase: how a model writes on without the answer."""
    bare = query.strip().rstrip("?").strip()
    for pattern, phrase in _DESCRIPTIONS:
        if pattern.match(bare):
            return pattern.sub(phrase, bare)
    return f"the answer to “{bare}”"


def written_out(templates: Sequence[str], answers: Sequence[str | None], index: int) -> str:
    """Query ``index`` (from 0): earlier answers filled in, and described where there is none."""
    fillings: list[str | None] = []
    for earlier in range(index):
        answer = answers[earlier] if earlier < len(answers) else None
        fillings.append(answer or described(fill_in(templates[earlier], fillings)))
    return fill_in(templates[index], fillings)
