"""What the simulated model asks or searches for next, and when it stops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..metrics import normalise
from .gathering import Shown, missing_query
from .judging import Judge


def next_query(
    judge: Judge, words: str, steps: Sequence[dict[str, Any]], shown: Sequence[Shown], asked: Iterable[str]
) -> str | None:
    """The query for the first fact that is missing and was not asked for; None where it stops.

    It stops when nothing is missing, when it takes too little for enough (``misjudges``), and when it has asked for
    everything, the whole question last. Where it asks badly (``asks``), that comes first.

    Args:
        judge: the model as it judges in this prompt.
        words: the question's.
        steps: what is there, as `gather` gives it.
        shown: what the prompt shows of it.
        asked: the queries before.
    """
    before = {normalise(query) for query in asked}
    lacking = lacking_queries(judge, words, steps, shown, before)
    if not lacking or (before and judge.takes_for_enough(words, shown)):
        return None
    if normalise(words) not in before and not judge.asks_well(words, shown):
        return words
    return lacking[0]


def lacking_queries(
    judge: Judge, words: str, steps: Sequence[dict[str, Any]], shown: Sequence[Shown], before: Iterable[str]
) -> list[str]:
    """The queries for what is missing, without those asked ``before`` (in their normal form), the whole question last;
    none where nothing is missing."""
    lacking = [str(step["query"]) for step in steps if not step["answer"]]
    if not lacking:
        return []
    every = dict.fromkeys([missing_query(judge.mind, words, steps, shown), *lacking, words])
    return [query for query in every if normalise(query) not in set(before)]
