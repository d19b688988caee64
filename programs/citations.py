"""Marks and references agree: ``[n]`` is always ``references[n-1]``."""

from __future__ import annotations

import re

from ..retrieval import Passage

_MARKS = re.compile(r"\s?\[\s*(\d+(?:\s*[,;]\s*\d+)*)\s*\]")


def settle_marks(content: str, references: list[Passage]) -> tuple[str, list[Passage]]:
    """Content and references without loose ends.

    A mark that points nowhere is removed, a reference that nothing marks is dropped, and what is left is
    renumbered without a gap, in the order of ``references``. ``[1, 2]`` is read as ``[1][2]``.
    """
    settled = _without_loose_marks(content, len(references))
    kept = sorted({n for found in _MARKS.finditer(settled) for n in _numbers(found)})
    renumbered = {old: new for new, old in enumerate(kept, start=1)}
    return _rewritten(settled, renumbered), [references[n - 1] for n in kept]


def _without_loose_marks(content: str, count: int) -> str:
    """Without marks above ``count``; removing one may leave another, as in ``[1[9]]``, so until nothing changes."""
    known = {n: n for n in range(1, count + 1)}
    while (settled := _rewritten(content, known)) != content:
        content = settled
    return content


def _rewritten(content: str, numbers: dict[int, int]) -> str:
    """Each mark with its new number; one that has none is removed, with the space before it."""

    def rewrite(found: re.Match[str]) -> str:
        marks = "".join(f"[{numbers[n]}]" for n in _numbers(found) if n in numbers)
        return f"{_space(found)}{marks}" if marks else ""

    return _MARKS.sub(rewrite, content)


def _numbers(found: re.Match[str]) -> list[int]:
    return [int(number) for number in re.split(r"[,;]", found[1])]


def _space(found: re.Match[str]) -> str:
    return found[0][0] if found[0][0].isspace() else ""
