"""Scores of the passages that a program found or kept, against the gold passages.

A passage is known by its id in the corpus, or by its fingerprint, which is the same in every corpus that holds it. Only
where a task does not know its gold passages does a title stand for them, and then a passage of another part of the same
article counts as well.

Each score takes one name for each passage, best first, and returns None if the gold passages are unknown.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Protocol, TypeVar

from .answer_scores import contains, normalise, pattern_in

_NO_LETTER = re.compile(r"[\W_]+")
_FINGERPRINT = re.compile(r"[0-9a-f]{24}")


class HasId(Protocol):
    """What has an id that is unique in its corpus, as a passage has."""

    @property
    def id(self) -> str:
        """Return the id."""


T = TypeVar("T", bound=HasId)


def normalise_title(title: str) -> str:
    """Return the title in lower case, with spaces for underscores, HTML entities resolved, Unicode composed (NFKC)."""
    return " ".join(unicodedata.normalize("NFKC", html.unescape(title)).replace("_", " ").casefold().split())


@lru_cache(maxsize=2048)  # what a question found is looked at by each measure
def passage_fingerprint(title: str, text: str) -> str:
    """Return 24 hex digits that tell a passage from others by the letters and digits of its title and text.

    White space, punctuation and case do not count: a data set's paragraph and the same paragraph in a corpus may differ
    in them.
    """
    plain = unicodedata.normalize("NFKC", html.unescape(f"{title} {text}")).casefold()
    return hashlib.sha256(_NO_LETTER.sub("", plain).encode()).hexdigest()[:24]


def is_fingerprint(name: str) -> bool:
    """Return whether the name of a gold passage is a fingerprint, and not an id."""
    return bool(_FINGERPRINT.fullmatch(name))


def passage_names(passages: Iterable[Any], gold: Iterable[str]) -> list[str]:
    """Return the name of each passage by which it can be a gold one: its id if that is gold, else its fingerprint.

    Args:
        passages: with ``id``, ``title`` and ``text``.
        gold: ids and fingerprints.
    """
    known = set(gold)
    return [one.id if one.id in known else passage_fingerprint(one.title, one.text) for one in passages]


def gold_names(gold_passages: Sequence[str], gold_titles: Sequence[str]) -> list[str]:
    """Return the names of the gold passages: ids and fingerprints, or normal titles if only they are known."""
    return list(gold_passages) or [normalise_title(title) for title in gold_titles]


def names_as(passages: Iterable[Any], gold_passages: Sequence[str]) -> list[str]:
    """Return the name of each passage of the kind that `gold_names` gives: its title if no gold passage is known."""
    return passage_names(passages, gold_passages) if gold_passages else [normalise_title(p.title) for p in passages]


def recall_at_k(names: Sequence[str], gold: Iterable[str], k: int | None = None) -> float | None:
    """Return the share of the gold names that are among the first k passages' names; of all passages where k is None.

    Raises:
        ValueError: if k is below 1.
    """
    if k is not None and k < 1:
        raise ValueError(f"recall@k needs k of 1 or more, not {k}")
    wanted = set(gold)
    return len(wanted & set(names[:k])) / len(wanted) if wanted else None


def answers_in_passages(answers: Iterable[str], style: str) -> list[str]:
    """Return the answers that a passage can hold: short ones, but for yes and no."""
    return [one for one in answers if normalise(one) not in {"yes", "no", ""}] if style == "short" else []


def answer_stands_in(passages: Iterable[Any], answers: Sequence[str], are_regex: bool = False) -> bool:
    """Return whether a gold answer stands in one of the passages, as whole words; a pattern, whether it is found."""
    texts = (f"{passage.title} {passage.text}" for passage in passages)
    if are_regex:
        return any(pattern_in(text, answers) for text in texts)
    return any(contains(text, answer) for text in texts for answer in answers)


def precision(names: Sequence[str], gold: Iterable[str]) -> float | None:
    """Return the share of passages that are gold ones; 0 if there are no passages."""
    wanted = set(gold)
    if not wanted:
        return None
    return sum(name in wanted for name in names) / len(names) if names else 0.0


def f1_of_names(names: Iterable[str], gold: Iterable[str]) -> float:
    """Return the F1 of a set of passages against the gold ones; 1 if both are empty (MuSiQue's rule)."""
    chosen, wanted = set(names), set(gold)
    return 2 * len(chosen & wanted) / (len(chosen) + len(wanted)) if chosen or wanted else 1.0


def s_precision(names: Sequence[str], gold: Iterable[str]) -> bool | None:
    """Return whether the kept passages are exactly the gold ones; their mean is S-precision (BlendFilter)."""
    wanted = set(gold)
    return set(names) == wanted if wanted else None


def ranked(kept: Sequence[T], searches: Sequence[Sequence[T]]) -> list[T]:
    """Return every passage that a program saw, each once, in the one order in which all programs are measured.

    A passage that the program kept for its answer stands before one that it did not keep. Then the best rank counts
    that any search gave the passage. Of those with the same rank, the one of the earlier search stands first. What was
    kept without a search comes last of the kept ones.

    Args:
        kept: what the answer rests on (``prediction.passages``).
        searches: what each search found, best first, in the order in which the program searched.
    """
    best: dict[str, tuple[tuple[float, int], T]] = {}
    for number, found in enumerate(searches):
        for rank, passage in enumerate(found):
            known = best.get(passage.id)
            if known is None or (rank, number) < known[0]:
                best[passage.id] = (rank, number), passage
    for number, passage in enumerate(kept):
        best.setdefault(passage.id, ((inf, number), passage))
    ids = {passage.id for passage in kept}
    return [passage for _, passage in sorted(best.values(), key=lambda entry: (entry[1].id not in ids, entry[0]))]
