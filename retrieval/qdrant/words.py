"""BM25 as sparse vectors: how much each word of a passage counts. Qdrant multiplies that with how rare the word is.

The first part needs the mean length of the passages, which is that of the first upload: passages that are added later
change no weight of those that are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from ..bm25 import BM25Settings, check_words, tokenized, words_of
from ..passage import Passage

Words = tuple[list[int], list[float]]
"""Numbers of words, ascending, and what each of them counts."""


def mean_length(passages: Iterable[Passage], settings: BM25Settings) -> float:
    """Return how many words a passage has in the mean."""
    lengths = [len(words) for passage in passages for words in words_of([passage], settings)]
    check_words([length for length in lengths if length])
    return sum(lengths) / len(lengths)


def passage_words(passages: Sequence[Passage], settings: BM25Settings, mean: float) -> list[Words]:
    """Return the words of passages, each with its part of BM25's weight (Robertson et al., 1994)."""
    return [_weighted(counts, settings, mean) for counts in _counts(words_of(passages, settings))]


def _weighted(counts: Counter[int], settings: BM25Settings, mean: float) -> Words:
    length = settings.k1 * (1 - settings.b + settings.b * counts.total() / mean)
    numbers = sorted(counts)
    return numbers, [counts[number] / (length + counts[number]) for number in numbers]


def query_words(queries: Sequence[str], settings: BM25Settings) -> list[Words]:
    """Return the words of each query and how often it has them."""
    found = _counts(tokenized(queries, settings))
    return [(sorted(counts), [float(counts[number]) for number in sorted(counts)]) for counts in found]


def _counts(texts: Iterable[Iterable[str]]) -> list[Counter[int]]:
    return [Counter(map(_number, words)) for words in texts]


@lru_cache(1 << 18)
def _number(word: str) -> int:
    """Return the number of a word: so no list of words is needed. Of 100,000 words, about one pair shares a number."""
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big")
