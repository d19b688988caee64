"""The names in a text: what passages are titled by, and what else several of them name. A name is known by 64 bits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from hashlib import blake2b
from itertools import chain, dropwhile, pairwise
from urllib.parse import unquote, urljoin

import numpy as np
import regex

from ...common.text import words_in
from ..bm25 import stop_words
from ..lists import Array, places_in
from ..passage import Passage

LONGEST = 7  # words of a title that is looked for in texts
HEAD = (1 << 31) - 1  # bits by which a word of a title is known
_MARKS, _FACTOR, _BITS = 1 << 24, 0x9E3779B97F4A7C15, (1 << 64) - 1
_IN_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_JOINING = "(?:of|the|de|la|le|du|di|da|del|des|von|van|der|den|al|el|bin|ibn|y)"
_SPAN = regex.compile(rf"\p{{Lu}}[\w'’\-]*\.?(?: (?:{_JOINING} ){{0,2}}[\p{{Lu}}\d][\w'’\-]*\.?)*")
_TARGET = re.compile(r"\]\(<?([^)>#\s]+)")  # of a link in Markdown, which readers make of those in HTML, too
_SUBJECT = regex.compile(  # what a first sentence names before "is", brackets or a comma
    r"(?:(?:The|An?) )?(\p{Lu}[^.;:()]{0,60}?[\p{Lu}\d][\w'’\-]*|\p{Lu}[\w'’\-]+)(?= \(|,? (?:is|was|are|were) |, )"
)
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"\b(?:(\d{{1,2}}) ({_MONTH})|({_MONTH}) (\d{{1,2}})),? (\d{{4}})\b")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")


@lru_cache(1 << 18)
def word_hash(word: str) -> int:
    """Return 64 bits that stand for a word, in every process the same."""
    return int.from_bytes(blake2b(word.encode(errors="replace"), digest_size=8).digest(), "little")


def phrase_hash(words: Iterable[str]) -> int:
    """Return 64 bits that stand for words in their order; those of one word are its own."""
    return reduce(lambda value, word: (value * _FACTOR + word_hash(word)) & _BITS, words, 0)


def title_words(title: str) -> list[str]:
    """Return the words by which a text would name a title: without what stands in brackets behind it."""
    return words_in(_IN_BRACKETS.sub("", title) or title)


def called(passage: Passage, bare: bool) -> str:
    """Return what other texts call a passage: its title's last part; of a bare corpus, what its text names first."""
    found = _SUBJECT.match(passage.text) if bare and not passage.title else None
    return found[1] if found else passage.title.rsplit(" › ", 1)[-1]


def documents_of(passage: Passage) -> set[int]:
    """Return names for the document of a passage and those that it links to; passages that share one are joined."""
    own = passage.source.partition("#")[0]
    paths = {own, *(urljoin(own, target) for target in _TARGET.findall(passage.text))} if own else ()
    return {word_hash(f"document {unquote(path)}") for path in paths}


def title_hash(title: str) -> int:
    """Return what a title is known by; 0 for one that is not looked for: a number, stop words, too short or long."""
    words = title_words(title)
    if len(words) > LONGEST or all(word.isdigit() or word in stop_words() for word in words):
        return 0
    return phrase_hash(words) if len(words) > 1 or len(words[0]) > 3 or not words[0].isascii() else 0


def names_in(text: str) -> set[int]:
    """Return the names in a text: spans of capitalised words, each two neighbours in longer ones, dates and years."""
    found = {phrase_hash([month or other, day or date, year]) for day, month, other, date, year in _DATE.findall(text)}
    return found.union(map(word_hash, _YEAR.findall(text)), *map(names_in_span, _SPAN.findall(text)))


@lru_cache(1 << 18)
def names_in_span(span: str) -> frozenset[int]:
    """Return the names in a span of capitalised words. Few spans make up most of those in a corpus."""
    words = list(dropwhile(stop_words().__contains__, words_in(span)))
    words = words[:-1] if words[-1:] == ["s"] else words
    if len(words) < 2 and not (words and len(words[0]) > 2 and not words[0].isdigit()):
        return frozenset()
    parts = pairwise(words) if len(words) > 2 else ()
    return frozenset([phrase_hash(words), *(phrase_hash(two) for two in parts if stop_words().isdisjoint(two))])


def marks_of(titles: Array) -> Array:
    """Return (2 ** 24,) which low bits titles have: a phrase whose bits no title has is none, and is not looked up."""
    marks = np.zeros(_MARKS, bool)
    marks[titles & np.uint64(_MARKS - 1)] = True
    return marks


def named_titles(texts: Sequence[Sequence[str]], titles: Array, marks: Array | None = None) -> tuple[Array, Array]:
    """Return (matches,) in which text, a list of words, a title stands, and which; at each place the longest."""
    lengths = np.array([len(words) for words in texts], np.int64)
    text_of, end_of = np.repeat(np.arange(len(texts)), lengths), np.repeat(np.cumsum(lengths), lengths)
    words = np.fromiter(map(word_hash, chain.from_iterable(texts)), np.uint64, len(text_of))
    place, rolling = np.arange(len(words)), np.zeros(len(words), np.uint64)
    longest, title = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    for length in range(1, min(LONGEST, len(words)) + 1):
        rolling = rolling[: len(words) - length + 1] * np.uint64(_FACTOR) + words[length - 1 :]
        found = np.flatnonzero(place[: len(rolling)] + length <= end_of[: len(rolling)])
        if marks is not None:
            found = found[marks[rolling[found] & np.uint64(_MARKS - 1)]]
        at = places_in(titles, rolling[found])
        longest[found[at >= 0]], title[found[at >= 0]] = length, at[at >= 0]
    starts = np.flatnonzero(longest)
    ends = starts + longest[starts]
    before = np.maximum.accumulate(np.concatenate([[0], ends]))[: len(ends)]
    whole = starts[ends > before]  # the others lie within a longer one
    return text_of[whole], title[whole]
