"""The one normal form in which answers are compared."""

from __future__ import annotations

import re
import string
import unicodedata

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_MARKS = re.compile(r"\s*\[\d+\]")


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation, English articles and extra white space.

    The answer normalisation of SQuAD's evaluation script (Rajpurkar et al., EMNLP 2016), which HotpotQA,
    2WikiMultiHopQA and MuSiQue share. Letters with accents are decomposed first (Unicode NFD, as in DPR), so
    that the two spellings of ``é`` are one.
    """
    lowered = unicodedata.normalize("NFD", text).lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", lowered).split())


def contains(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words, both normalised; an empty one never does."""
    needle = normalise(phrase)
    return bool(needle) and f" {needle} " in f" {normalise(text)} "


def without_marks(text: str) -> str:
    """The text without its reference marks ``[1]``, ``[2]`` …"""
    return _MARKS.sub("", text)
