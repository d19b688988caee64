"""Quotes: where the words that an LM copied stand in a passage, and whether they say a fact."""

from __future__ import annotations

import re
import unicodedata

from ..common.sentences import sentences
from .claims import all_stand_in, claim_terms, items
from .values import by_value, has_number

_ELLIPSIS = re.compile(r"\[?(?:\.{3,}|…)\]?")
_WORD = re.compile(r"[^\W_]+")
_GENITIVE = re.compile(r"(?<=\w)['’]s\b")  # not the quotation mark before a word: ''Single
_THOUSANDS = re.compile(r"(?<=\d)[,\u202f\u00a0 ](?=\d{3}(?!\d))")
SHORTEST = 3  # words; fewer stand in many passages


def quoted_sentences(quote: str, text: str) -> str | None:
    """Return the sentences of a text in which a quote stands; None if it does not stand there.

    Case, accents, punctuation and the spelling of thousands do not count. An ellipsis leaves words out: what stands
    around it must follow in this order.

    Args:
        quote: as an LM copied it.
        text: of a passage.
    """
    parts = [part for piece in _ELLIPSIS.split(quote) if (part := _words(piece))]
    told = sentences(text)
    words = [(word, place) for place, sentence in enumerate(told) for word in _words(sentence)]
    starts, first, last = 0, None, None
    for part in parts:
        begin = _find(part, [word for word, _ in words], starts)
        if begin is None:
            return None
        starts = begin + len(part)
        first = words[begin][1] if first is None else first
        last = words[starts - 1][1]
    return None if first is None or last is None else " ".join(told[first : last + 1])


def proving_sentences(fact: str, quote: str, title: str, text: str, question: str) -> str | None:
    """Return the sentences of a passage that prove a fact by a quote; None if they prove nothing.

    They do if the quote stands in the passage and says more than its title, and if its sentences, with the title, hold
    each name and number of the fact that the question does not give, and at least one name or number of the fact.

    Args:
        fact: one sentence.
        quote: from the passage.
        title, text: of the passage.
        question: that the fact helps to answer.
    """
    told = quoted_sentences(quote, text)
    if told is None or len(_words(quote)) < SHORTEST or set(_words(quote)) <= set(_words(title)):
        return None
    terms, held = [item for term in claim_terms(fact) for item in items(term)], f"{title}. {told}"
    lacking = [term for term in terms if not _holds(held, term)]
    proven = all(_holds(question, term) for term in lacking) and (not terms or len(lacking) < len(terms))
    return told if proven else None


def _holds(text: str, term: str) -> bool:
    """Return whether a text holds a number or date as a value, or the words of a name, in any order."""
    if has_number(term):
        return all_stand_in(text, term)
    return any(set(by_value(term, joined).split()) <= set(by_value(text, joined).split()) for joined in (False, True))


def _find(part: list[str], words: list[str], start: int) -> int | None:
    """Return where a run of words begins, at or after a place."""
    places = range(start, len(words) - len(part) + 1)
    return next((place for place in places if words[place : place + len(part)] == part), None)


def _words(text: str) -> list[str]:
    """Return the words of a text without case, accents and thousands separators."""
    plain = unicodedata.normalize("NFKD", _THOUSANDS.sub("", text))
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold()
    return _WORD.findall(_GENITIVE.sub("", bare))
