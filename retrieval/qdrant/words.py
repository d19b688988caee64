"""BM25 as sparse vectors: a passage's words with their weights. Their product with a query's words is BM25's score.

Both parts of a weight are stored, how often the word stands in the passage and how rare it is in the corpus. Qdrant
could compute the second part itself (``modifier: idf``), but does so for each shard alone, so that scores of two shards
do not compare; with both parts stored, the ranking is that of our BM25 however many shards there are. The first part
needs the mean length of all passages in any case: when passages are added, all weights are computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from math import log

from ..bm25 import BM25Settings, check_words, tokenized, words_of
from ..passage import Passage

Words = tuple[list[int], list[float]]
"""Numbers of words, ascending, and what each of them counts."""
_TOGETHER = 1_000


class WordWeights:
    """The weights of words in the passages of a corpus (Robertson et al., 1994; bm25s's ``lucene``).

    Args:
        passages: of the corpus; they are read once.
        settings: of BM25.

    Raises:
        CorpusError: if there is no word in any of them.
    """

    def __init__(self, passages: Iterable[Passage], settings: BM25Settings) -> None:
        self._settings = settings
        self._count = self._length = 0
        self._holding: Counter[int] = Counter()
        remaining = iter(passages)
        while some := list(islice(remaining, _TOGETHER)):
            for counts in _counts(words_of(some, settings)):
                self._count += 1
                self._length += counts.total()
                self._holding.update(counts.keys())
        check_words(self._holding)

    def of(self, passages: Sequence[Passage]) -> list[Words]:
        """Return the words of passages of the corpus with their weights."""
        return [self._weighted(counts) for counts in _counts(words_of(passages, self._settings))]

    def _weighted(self, counts: Counter[int]) -> Words:
        k1, b = self._settings.k1, self._settings.b
        length = k1 * (1 - b + b * counts.total() / (self._length / self._count)) if counts else 0.0
        numbers = sorted(counts)
        return numbers, [self._rarity(number) * counts[number] / (length + counts[number]) for number in numbers]

    def _rarity(self, number: int) -> float:
        holding = self._holding[number]
        return log(1 + (self._count - holding + 0.5) / (holding + 0.5))


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
