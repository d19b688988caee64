"""BM25 (Robertson et al., 1994) through bm25s."""

from __future__ import annotations

import hashlib
import json
import logging
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from ..common.errors import CorpusError
from ..common.text import without_accents, words_in
from .base import Hits, IndexRetriever, batched, best
from .contracts import Passages
from .indexes.contents import IndexManifest, PassageStore, corpus_hash
from .indexes.index_kind import IndexKind, Order, WrittenIndex
from .passage import Passage

_FOLDER = "bm25"
_TOGETHER = 1_000


@dataclass(frozen=True)
class BM25Settings:
    """Term saturation, length normalisation, and whether English stopwords, and the accents of letters, are left out.

    Recall@5 of gold titles with stopwords and without: MuSiQue .503, .507 (16,988 passages, 200 questions);
    2Wiki .661, .664 (12,002; 600); HotpotQA .699, .705 (23,125; 400). Without is also twice as fast. Recall@5 of gold
    passages with accents and without: MuSiQue .447, .449; 2Wiki .664, .664; HotpotQA .705, .704.

    Raises:
        ValidationError: if a number is outside of what the formula is made for.
    """

    k1: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.2
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    without_stopwords: bool = True
    without_accents: bool = True

    OLDER: ClassVar[dict[str, Any]] = {"without_accents": False}
    """Settings that older indexes do not name, as they are there."""


class BM25Retriever(IndexRetriever):
    """BM25 over title and text, without case and accents. A passage without any word of the query is not found.

    What a word is tells `words_in`. bm25s makes an index in memory: 3.9 KB a passage (23,125 Wikipedia paragraphs; 5.8
    KB with its own lists of tokens). The vocabulary's part of that does not grow with the corpus, so 21 million
    passages take some 60 GB. A search reads its words' part of the index from disk (1.1 KB a passage in all), and holds
    a score for every passage.
    """

    name = "bm25"

    def __init__(self, passages: Passages, fingerprint: str, index: Any, settings: BM25Settings) -> None:
        super().__init__(passages, fingerprint)
        self._index = index
        self.settings = settings

    @classmethod
    def from_passages(cls, passages: Iterable[Passage], settings: BM25Settings | None = None) -> BM25Retriever:
        """Return an index in memory; a thousand passages take a tenth of a second.

        Raises:
            CorpusError: if there is no word in any of them.
        """
        held, chosen = list(passages), settings or BM25Settings()
        made_from = json.dumps([cls.name, asdict(chosen), corpus_hash(held)])
        fingerprint = hashlib.sha256(made_from.encode()).hexdigest()[:16]
        return cls(held, fingerprint, _built(held, chosen), chosen)

    @classmethod
    def load(cls, folder: Path, passages: Passages, fingerprint: str, settings: BM25Settings) -> BM25Retriever:
        """Load the index of a folder."""
        import bm25s

        index = bm25s.BM25.load(str(folder / _FOLDER), load_corpus=False, mmap=True, allow_pickle=False)
        return cls(passages, fingerprint, index, settings)

    def postings(self, query: str) -> dict[str, tuple[Any, Any]]:
        """Return for each word of a query that passages hold: their positions, rising, and its weight in each."""
        arrays, found = self._index.scores, {}
        for word in dict.fromkeys(tokenized([query], self.settings)[0]):
            if (number := self._index.vocab_dict.get(word)) is not None:
                first, end = map(int, arrays["indptr"][number : number + 2])
                found[word] = arrays["indices"][first:end], arrays["data"][first:end]
        return found

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        """Return the k best passages that hold a word of each query; one that holds none has the score 0."""
        words = tokenized(queries, self.settings)
        return [best(self._index.get_scores(tokens), k, above=0) if tokens else [] for tokens in words]


class _TokenLists:
    """The token numbers of all passages in one array; it serves bm25s as lists of lists do, and is far smaller."""

    def __init__(self) -> None:
        self.vocab: dict[str, int] = {}
        self._tokens, self._starts = array("i"), array("q", [0])

    @property
    def ids(self) -> _TokenLists:
        """Return itself: bm25s asks for ``ids`` and ``vocab``."""
        return self

    def extend(self, tokenized: Iterable[Sequence[str]]) -> None:
        """Take the tokens of more passages."""
        number = self.vocab
        for tokens in tokenized:
            self._tokens.extend(number.setdefault(token, len(number)) for token in tokens)
            self._starts.append(len(self._tokens))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        return (self._tokens[first:last].tolist() for first, last in pairwise(self._starts))


def _built(passages: Iterable[Passage], settings: BM25Settings) -> Any:
    import bm25s

    lists = _TokenLists()
    for some in batched(passages, _TOGETHER):
        lists.extend(words_of(some, settings))
    check_words(lists.vocab)
    logging.getLogger("bm25s").setLevel(logging.INFO)  # bm25s sets its own to DEBUG, past what the process asked for
    index = bm25s.BM25(k1=settings.k1, b=settings.b)
    index.index(lists, show_progress=False)
    return index


def check_words(found: Collection[object]) -> None:
    """Refuse a corpus without words."""
    if not found:
        raise CorpusError("None of the passages holds a word that BM25 could find.")


def words_of(passages: Iterable[Passage], settings: BM25Settings) -> list[list[str]]:
    """Return the words of each passage's title and text."""
    return tokenized([f"{passage.title} {passage.text}" for passage in passages], settings)


@lru_cache(1)
def stop_words() -> frozenset[str]:
    """Return the English words that name nothing."""
    from bm25s.stopwords import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


def tokenized(texts: Sequence[str], settings: BM25Settings) -> list[list[str]]:
    """Return the words of each text, as BM25 knows them."""
    left_out = stop_words() if settings.without_stopwords else frozenset()
    known = without_accents if settings.without_accents else str
    return [[word for word in map(known, words_in(text)) if word not in left_out] for text in texts]


def _write(order: Order) -> WrittenIndex:
    """Write arrays and JSON; nothing is pickled."""
    settings = order.settings or BM25Settings()
    _built(order.passages, settings).save(str(order.folder / _FOLDER), show_progress=False, allow_pickle=False)
    return WrittenIndex(asdict(settings))


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore) -> BM25Retriever:
    return BM25Retriever.load(folder, passages, manifest.fingerprint, BM25.stored(manifest))


BM25 = IndexKind("bm25", "BM25 over title and text; needs no model", _write, _load, settings=BM25Settings)
