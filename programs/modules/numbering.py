"""Passages with the numbers by which an LM refers to them."""

from __future__ import annotations

from ...retrieval import Passage


def numbered(passages: list[Passage], start: int = 1) -> list[str]:
    """The passages as an LM is shown them, each behind its number: ``[1] title | text``.

    A list in a prompt has no numbers of its own, and LMs count badly.
    """
    return [f"[{n}] {passage.shown()}" for n, passage in enumerate(passages, start)]


def numbered_among(passages: list[Passage], some: list[Passage]) -> list[str]:
    """Some of the passages as an LM is shown them, each behind its number among them all, from 1."""
    number = {passage.id: n for n, passage in enumerate(passages, start=1)}
    return [f"[{number[passage.id]}] {passage.shown()}" for passage in some]
