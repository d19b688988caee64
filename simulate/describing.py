"""Queries written out: what an LM puts where an earlier answer goes, if it has one or not."""

from __future__ import annotations

import re
from collections.abc import Sequence

_EARLIER = re.compile(r"#(\d+)|<(\d+)>")
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


def refers_to(template: str) -> list[int]:
    """The numbers of the earlier steps (from 1) whose answers go into the query."""
    return [int(found[1] or found[2]) for found in _EARLIER.finditer(template)]


def filled(template: str, fillings: Sequence[str | None]) -> str:
    """The query with each ``#n`` (or ``<n>``) replaced by ``fillings[n - 1]``; one that has none stays."""

    def filling(found: re.Match[str]) -> str:
        number = int(found[1] or found[2])
        text = fillings[number - 1] if 1 <= number <= len(fillings) else None
        return text or found[0]

    return _EARLIER.sub(filling, template)


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
        fillings.append(answer or described(filled(templates[earlier], fillings)))
    return filled(templates[index], fillings)
