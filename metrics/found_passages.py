"""Scores of the passages that a program found or kept, against the gold passages' titles.

Each function takes titles, one for each passage, best first, and returns None if the gold passages are unknown.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence


def normalise_title(title: str) -> str:
    """Return the title in lower case, with spaces for underscores, HTML entities resolved, Unicode composed (NFKC)."""
    return " ".join(unicodedata.normalize("NFKC", html.unescape(title)).replace("_", " ").casefold().split())


def recall_at_k(titles: Sequence[str], gold_titles: Iterable[str], k: int) -> float | None:
    """Return the share of gold titles that are among the first k passages' titles.

    Raises:
        ValueError: if k is below 1.
    """
    if k < 1:
        raise ValueError(f"recall@k needs k of 1 or more, not {k}")
    gold = _titles(gold_titles)
    return len(gold & _titles(titles[:k])) / len(gold) if gold else None


def precision(titles: Sequence[str], gold_titles: Iterable[str]) -> float | None:
    """Return the share of passages whose title is a gold title; 0 if there are no passages."""
    gold = _titles(gold_titles)
    if not gold:
        return None
    return sum(normalise_title(title) in gold for title in titles) / len(titles) if titles else 0.0


def s_precision(titles: Sequence[str], gold_titles: Iterable[str]) -> bool | None:
    """Return whether the kept titles are exactly the gold ones; their mean is S-precision (BlendFilter)."""
    gold = _titles(gold_titles)
    return _titles(titles) == gold if gold else None


def _titles(titles: Iterable[str]) -> set[str]:
    return {normalise_title(title) for title in titles}
