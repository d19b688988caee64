"""Scores of an answer that is several items, or none, or a count: each item is matched with one gold item at most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from .claims import items
from .intervals import Interval, share_interval
from .values import by_value, forms

Items = Sequence[Sequence[str]]
"""What is needed: each item with its spellings, of which any is right."""
_LISTED = re.compile(r"[:(] *([^:()]+)\)?\W*$")  # in "2: Ann and Bo" and "2 (Ann, Bo)"
_NUMBER = re.compile(r"-?\d[\d.]*%?")


def parted(answer: str, needed: Items) -> list[str]:
    """Return the items of an answer in words. A gold item stays whole that `items` would part: Trinidad and Tobago."""
    text, found = answer.replace("\n", "; "), list[str]()
    whole = {spelling for item in needed for spelling in item if len(items(spelling)) > 1}
    for spelling in sorted(whole, key=lambda one: (-len(one), one)):
        around = re.split(rf"(?<!\w){re.escape(spelling)}(?!\w)", text, maxsplit=1, flags=re.IGNORECASE)
        if len(around) == 2:
            text = "; ".join(around)
            found.append(spelling)
    return [*found, *(one for one in items(text) if one.strip(" .,;"))]


def list_scores(given: str | Sequence[str], needed: Items) -> dict[str, float]:
    """Return precision, recall and F1 of an answer's items, and whether they are the whole set and nothing else.

    Args:
        given: the items, or an answer in words. An item that stands twice is one too many.
        needed: the gold items.
    """
    told = parted(given, needed) if isinstance(given, str) else [one for one in given if one.strip()]
    open_items = [frozenset[str]().union(*map(forms, item)) for item in needed]
    for one in told:
        if (hit := next((item for item in open_items if not item.isdisjoint(forms(one))), None)) is not None:
            open_items.remove(hit)
    hits = len(needed) - len(open_items)
    return {
        "precision": hits / len(told) if told else 0.0,
        "recall": hits / len(needed) if needed else 0.0,
        "f1": 2 * hits / (len(told) + len(needed)) if hits else 0.0,
        "complete": float(hits == len(told) == len(needed)),
    }


def count_match(answer: str, golds: Sequence[str]) -> bool:
    """Return whether the one number in an answer is a gold one by its value; an answer of several numbers is wrong.

    So is one that lists other than so many items: "3 (Ann and Bo)".
    """
    told, listed = _numbers(answer), _LISTED.search(answer)
    named = items(listed[1]) if listed else ()
    fits = len(named) < 2 or told == {str(len(named))}
    return fits and len(told) == 1 and any(told == _numbers(gold) for gold in golds)


def _numbers(text: str) -> set[str]:
    return {word for word in by_value(text).split() if _NUMBER.fullmatch(word)}


def declined(prediction: Any) -> bool:
    """Return whether a prediction has no answer, and did not fail."""
    answer, told = getattr(prediction, "answer", None), getattr(prediction, "answers", None)
    given = [answer] if told is None else told
    return getattr(prediction, "failure", None) is None and not any(str(one or "").strip() for one in given)


def declined_rates(asked: Iterable[tuple[bool, bool]]) -> dict[str, Interval]:
    """Return how many questions without an answer were declined, and how many with one were not; without any, no rate.

    Args:
        asked: for each question, whether the corpus tells its answer, and whether the program declined it.
    """
    rows = list(asked)
    right = {
        "declined": [gone for told, gone in rows if not told],
        "not declined": [not gone for told, gone in rows if told],
    }
    return {name: share_interval(sum(found), len(found)) for name, found in right.items() if found}
