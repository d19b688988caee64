"""The official score of supporting facts: sentences of the gold paragraphs (Yang et al., EMNLP 2018; 2WikiMultiHopQA).

Both scripts compare sets of a paragraph's title and a sentence's number. Here a fingerprint stands for the title: of
one question's paragraphs it tells the same ones apart, and it is a mistake to cite another text of that title.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from ..common.sentences import sentences
from .citations import marked_fragments
from .claims import best_sentence
from .found_passages import passage_fingerprint

Fact = tuple[str, int]
"""A paragraph's fingerprint, and the number of a sentence in it, from 0."""
Told = Sequence[Mapping[str, Any]]
"""The gold paragraphs: ``title``, ``text``, ``sentences`` in order, ``supporting``: the numbers of the gold ones."""


def gold_facts(told: Told) -> set[Fact]:
    """Return the facts that support the answer."""
    return {(_name(one), number) for one in told for number in one["supporting"]}


def claimed_facts(content: str, references: Sequence[Any], told: Told) -> set[Fact]:
    """Return the facts that an answer claims: of each passage that it cites, the sentence that its words rest on.

    It is the sentence that `best_sentence` finds for the words that end at the mark. A passage in which there is none,
    or that no mark names, is not claimed. A passage that is no gold paragraph has sentences of our own splitting: to
    claim one is a mistake, whatever its number.

    Args:
        content: with marks: ``[n]`` is ``references[n - 1]``.
        references: with ``title`` and ``text``.
        told: see `Told`.
    """
    split = {_name(one): one["sentences"] for one in told}
    found = set()
    for fragment, numbers in marked_fragments(content):
        for cited in (references[number - 1] for number in numbers if 1 <= number <= len(references)):
            name = passage_fingerprint(cited.title, cited.text)
            place = best_sentence(fragment, split.get(name) or sentences(cited.text))
            if place is not None:
                found.add((name, place))
    return found


def fact_scores(claimed: Set[Fact], gold: Set[Fact]) -> dict[str, float]:
    """Return ``em``, ``f1``, ``precision`` and ``recall`` of a set of facts, by HotpotQA's script."""
    both = len(claimed & gold)
    precision = both / len(claimed) if claimed else 0.0
    recall = both / len(gold) if gold else 0.0
    return {
        "em": float(claimed == gold),
        "f1": 2 * precision * recall / (precision + recall) if both else 0.0,
        "precision": precision,
        "recall": recall,
    }


def _name(paragraph: Mapping[str, Any]) -> str:
    return passage_fingerprint(paragraph["title"], paragraph["text"])
