"""Passages as a prompt shows them: their numbers, their titles, and the answer to a fact that stands in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..data import Question
from ..metrics import contains, normalise, passage_fingerprint
from .world import WorldFact

_NUMBER = re.compile(r"^\[(\d+)\] ")
_EDGES = ".,;:!?()\"'“”"


@dataclass(frozen=True)
class Shown:
    """A passage of a prompt.

    Attributes:
        number: as printed before it, or its place from 1.
        text: ``title | text``.
    """

    number: int
    text: str


def read_shown(value: Any) -> list[Shown]:
    """Return the passages of an input field, numbered or not."""
    rows = [str(row) for row in value] if isinstance(value, list) else []
    found = [(_NUMBER.match(row), row) for row in rows]
    return [
        Shown(int(number[1]), row[number.end() :]) if number else Shown(place, row)
        for place, (number, row) in enumerate(found, start=1)
    ]


def split_title(passage: str) -> tuple[str, str]:
    """Return title and text of a passage shown as ``title | text``; the title is empty where it has none."""
    title, bar, text = passage.partition(" | ")
    return (title, text) if bar else ("", passage)


def supports(passage: str, titles: Iterable[str] | None, gold: Collection[str]) -> bool:
    """Tell whether the passage is a supporting one: one of ``gold`` where that is known, with one of the titles.

    ``gold`` are fingerprints. Any title will do where the titles are None.
    """
    title, text = split_title(passage)
    fits = titles is None or normalise(title) in {normalise(one) for one in titles}
    return fits and (not gold or passage_fingerprint(title, text) in gold)


def is_gold(passage: str, question: Question) -> bool:
    """Tell whether the passage is one of the question's gold passages; by title where only titles are known."""
    return supports(passage, None if question.gold_passages else question.gold_titles, question.gold_passages)


@lru_cache(maxsize=4096)  # one passage is read for one fact in many prompts
def find_answer(fact: WorldFact, passage: str) -> str:
    """Return the fact's answer as it stands in the passage; empty if the passage is not about the fact."""
    if not supports(passage, fact.titles, fact.gold):
        return ""
    text = split_title(passage)[1]
    return next((span for answer in fact.answers if (span := _find_run(answer, text))), "")


def _find_run(answer: str, text: str) -> str:
    """Return the run of words in the text that is the answer but for case and articles; empty where there is none.

    One with the answer's own article is taken first: "The Hague" and not "Hague"; else the shortest.
    """
    if not contains(text, answer):
        return ""
    wanted, words = normalise(answer), text.split()
    most = len(wanted.split()) + 2  # articles may stand in between
    runs = [" ".join(words[i : i + n]).strip(_EDGES) for i in range(len(words)) for n in range(1, most + 1)]
    right = (run for run in runs if normalise(run) == wanted)
    return min(right, key=lambda run: (run.casefold() != answer.casefold(), len(run)), default="")
