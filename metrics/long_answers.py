"""The score of an answer of several sentences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .text import without_marks


def rouge_l(answer: str, golds: Sequence[str]) -> float:
    """ROUGE-L (Lin, 2004) as an F-measure between 0 and 1, best over the gold answers.

    Computed by rouge-score with its Porter stemmer, over the longest common subsequence of the whole texts
    (``rougeL``, not the sentence-wise ``rougeLsum``). Reference marks are left out of the answer first.
    """
    text = without_marks(answer)
    return max((float(_scorer().score(gold, text)["rougeL"].fmeasure) for gold in golds), default=0.0)


@lru_cache(maxsize=1)
def _scorer() -> Any:
    # imports nltk: two seconds that a task of short answers should not pay
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)
