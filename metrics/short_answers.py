"""Scores of a short answer against the gold answers, any of which is right."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from .text import contains, normalise

_CLOSED = {"yes", "no", "noanswer"}


def exact_match(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer is a gold answer, both normalised: SQuAD's exact match, best over the golds."""
    return normalise(answer) in {normalise(gold) for gold in golds}


def f1(answer: str, golds: Sequence[str]) -> float:
    """Overlap of the answer's words with a gold answer's, best over the golds, between 0 and 1.

    SQuAD's F1 with the rule of HotpotQA's and 2WikiMultiHopQA's scripts: where one side is exactly ``yes``,
    ``no`` or ``noanswer`` and the other is not the same, the score is 0 ("no" shares a word with "no one").
    """
    return max((_f1(normalise(answer), normalise(gold)) for gold in golds), default=0.0)


def _f1(answer: str, gold: str) -> float:
    if answer != gold and (answer in _CLOSED or gold in _CLOSED):
        return 0.0
    words, gold_words = answer.split(), gold.split()
    shared = sum((Counter(words) & Counter(gold_words)).values())
    return 2 * shared / (len(words) + len(gold_words)) if shared else 0.0


def cover_exact_match(answer: str, golds: Sequence[str], *, whole_words: bool = True) -> bool:
    """Whether the answer contains a gold answer, both normalised: cover-EM (Rosset et al., 2020).

    Args:
        answer: the generated answer.
        golds: the gold answers; one that normalises to nothing is never contained.
        whole_words: count only whole words, as DPR's ``has_answer`` does, so that "45" does not stand in
            "3,845 miles" nor "no" in "unknown". The papers say only "contained"; False is that plain reading
            of characters, for figures that are laid beside theirs.
    """
    if whole_words:
        return any(contains(answer, gold) for gold in golds)
    text = normalise(answer)
    return any(needle in text for gold in golds if (needle := normalise(gold)))


def pattern_in(answer: str, patterns: Sequence[str]) -> bool:
    """Whether a regular expression is found anywhere in the answer, in any case: DPR's match for TREC.

    Raises:
        re.error: if a pattern is no regular expression.
    """
    return any(_compiled(pattern).search(_decomposed(answer)) for pattern in patterns)


def pattern_match(answer: str, patterns: Sequence[str]) -> bool:
    """Whether a regular expression matches the answer from its first character: DrQA's exact match for TREC.

    Raises:
        re.error: if a pattern is no regular expression.
    """
    return any(_compiled(pattern).match(_decomposed(answer)) for pattern in patterns)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_decomposed(pattern), re.IGNORECASE | re.MULTILINE)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)
