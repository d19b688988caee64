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
    marked = {n for found in _MARKS.finditer(content) for n in _numbers(found) if 1 <= n <= len(references)}
    kept = sorted(marked)
    renumbered = {old: new for new, old in enumerate(kept, start=1)}

    def settle(found: re.Match[str]) -> str:
        marks = "".join(f"[{renumbered[n]}]" for n in _numbers(found) if n in renumbered)
        return f"{_space(found)}{marks}" if marks else ""

    return _MARKS.sub(settle, content), [references[n - 1] for n in kept]


def _numbers(found: re.Match[str]) -> list[int]:
    return [int(number) for number in re.split(r"[,;]", found[1])]


def _space(found: re.Match[str]) -> str:
    return found[0][0] if found[0][0].isspace() else ""
