"""What stands in a passage as it is shown in a prompt: its title, and the answer to a fact."""

from __future__ import annotations

from collections.abc import Iterable

from ..metrics import contains, normalise
from .world import Fact

_EDGES = ".,;:!?()\"'“”"


def held(fact: Fact, passage: str) -> str:
    """The fact's answer as it stands in the passage, if the passage is about the fact; else empty."""
    if fact.titles is not None and not titled(passage, fact.titles):
        return ""
    text = split_title(passage)[1]
    spans = (span for answer in fact.answers if (span := _occurrence(answer, text)))
    return next(spans, "")


def titled(passage: str, titles: Iterable[str]) -> bool:
    """Whether the passage has one of the titles."""
    return normalise(split_title(passage)[0]) in {normalise(title) for title in titles}


def split_title(passage: str) -> tuple[str, str]:
    """Title and text of a passage shown as ``title | text``; the title is empty where it has none."""
    title, bar, text = passage.partition(" | ")
    return (title, text) if bar else ("", passage)


def _occurrence(answer: str, text: str) -> str:
    """The shortest run of words in the text that normalises to the answer; empty where there is none."""
    if not contains(text, answer):
        return ""
    wanted, words = normalise(answer), text.split()
    most = len(wanted.split()) + 2  # articles may stand in between
    runs = [" ".join(words[i : i + n]).strip(_EDGES) for i in range(len(words)) for n in range(1, most + 1)]
    return min((run for run in runs if normalise(run) == wanted), key=len, default="")
