"""What retrievers share: one that searches an index by position, one that encodes texts, and one made of others; and
the memory of what was computed before.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..common.errors import IndexRefused, QueryError
from .contracts import Passages, Retriever
from .passage import Passage

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
Key = TypeVar("Key")
Value = TypeVar("Value")

Hits = list[tuple[int, float]]
"""Positions in the corpus with their scores, best first."""
_HIT_BYTES = 128
_BLOCK = 1024
_MOST_KEPT = 128 << 20  # bytes, about
_ENTRY = 200  # bytes of an entry beside what it holds


class Kept(Generic[Key, Value]):
    """Values by their keys, until they are too many bytes together; then all are dropped. Safe in several threads."""

    def __init__(self) -> None:
        self._held: dict[Key, Value] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def all_of(
        self, keys: Sequence[Key], make: Callable[[list[Key]], Iterable[Value]], size: Callable[[Key, Value], int]
    ) -> list[Value]:
        """Return the value of each key; those that are not kept are made and kept.

        Args:
            make: gives the values of keys, in their order; it is called once, and not without a key.
            size: gives the bytes of a key and its value, about.
        """
        held = self._held  # which is never emptied, but replaced
        known = {key: held[key] for key in keys if key in held}
        new = [key for key in dict.fromkeys(keys) if key not in known]
        known.update(zip(new, make(new) if new else (), strict=True))
        with self._lock:
            for key in new:
                taken = size(key, known[key]) + _ENTRY
                if key in self._held or taken > _MOST_KEPT:
                    continue
                if self._bytes + taken > _MOST_KEPT:
                    self._held, self._bytes = {}, 0
                self._held[key] = known[key]
                self._bytes += taken
        return [known[key] for key in keys]


class WrappingRetriever(Retriever):
    """A retriever made of others. It is remote if one of them is, and compares texts as the first that can.

    Args:
        members: the others, one at least.
        name: of all together.
        fingerprint: of all together.
    """

    def __init__(self, members: Sequence[Retriever], name: str, fingerprint: str) -> None:
        self.members = tuple(members)
        self.name, self.fingerprint = name, fingerprint
        self.folder = "+".join(filter(None, (member.folder for member in members)))
        self.remote = any(member.remote for member in members)
        self.similarity = next(filter(None, (member.similarity for member in members)), None)


class IndexRetriever(Retriever):
    """A retriever over passages known by position. A subclass says how to find positions."""

    passages: Passages

    def __init__(self, passages: Passages, fingerprint: str) -> None:
        self.passages = passages
        self.fingerprint = fingerprint
        self._known: Kept[tuple[str, int], Hits] = Kept()

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, as single calls would."""
        return filled(self._found, check_search(queries, k), k, len(self.passages))

    def _found(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        found = self._known.all_of(  # an index does not change, and compared programs ask much the same
            [(query, k) for query in queries],
            lambda keys: self._search([query for query, _ in keys], k),
            lambda key, hits: len(key[0]) + _HIT_BYTES * len(hits),
        )
        return [[self.passages[at].model_copy(update={"score": score}) for at, score in hits] for hits in found]

    @abstractmethod
    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        """Return the hits of each query; ``1 <= k <= len(self.passages)``. Called from several threads at once."""


class NeuralRetriever(IndexRetriever):
    """A retriever over embeddings, with the encoder that made them.

    Args:
        passages: by position.
        fingerprint: of the index.
        encoder: embeds ``queries`` and ``passages``, and compares texts by ``similarity``.
    """

    def __init__(self, passages: Passages, fingerprint: str, encoder: Any) -> None:
        super().__init__(passages, fingerprint)
        self.encoder, self.similarity = encoder, encoder.similarity


def each_once(passages: Iterable[Passage]) -> list[Passage]:
    """Return the passages without copies of better ones: those of the same title and text."""
    kept: dict[tuple[str, str], Passage] = {}
    for passage in passages:
        kept.setdefault((passage.title, passage.text), passage)
    return list(kept.values())


def filled(
    search: Callable[[Sequence[str], int], list[list[Passage]]], queries: Sequence[str], k: int, most: int
) -> list[list[Passage]]:
    """Return for each query the k best passages, `each_once`; where copies take places, it is searched deeper.

    Args:
        search: gives for each query so many passages, best first.
        most: passages that there are.
    """
    lists = []
    for query, found in zip(queries, search(queries, min(k, most)), strict=True):
        kept, reach = each_once(found), min(k, most)
        while len(kept) < k and len(kept) < len(found) == reach < most:
            reach = min(2 * reach, most)
            found = search([query], reach)[0]
            kept = each_once(found)
        lists.append(kept[:k])
    return lists


def batched(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """Yield the items in their order, so many together at most."""
    remaining = iter(items)
    while some := list(islice(remaining, most)):
        yield some


def reopened(connect: Callable[[str], Retriever], name: str, fingerprint: str) -> Retriever:
    """Return the retriever that a pickle names."""
    retriever = connect(name)
    if retriever.fingerprint != fingerprint:
        raise IndexRefused(f"{name} holds the index {retriever.fingerprint}; the program was saved with {fingerprint}.")
    return retriever


def check_search(queries: Sequence[str], k: int) -> list[str]:
    """Return the queries, each as ``check_query`` leaves it."""
    if k < 1:
        raise QueryError(f"{k} passages were asked for; ask for one at least.")
    return [check_query(query) for query in queries]


def check_query(query: str) -> str:
    """Return the query without surrounding space and without halves of surrogate pairs, which no tokenizer reads.

    An overlong query stays whole: an encoder reads as much of it as its window holds.
    """
    if not isinstance(query, str):
        raise QueryError(f"A query must be text, not {type(query).__name__}.")
    cleaned = query.encode(errors="replace").decode().strip()
    if not cleaned:
        raise QueryError("The query is empty. Ask for something.")
    return cleaned


def best(scores: np.ndarray[Any, Any], k: int, above: float = -inf) -> Hits:
    """Return the k highest of one query's scores (passages,), best first; of equal ones the earlier passage first.

    Args:
        k: how many, if so many are above the bound.
    """
    import numpy as np

    reached = _reached(scores, k) if k < len(scores) else -inf
    top = np.flatnonzero(scores >= reached if reached > above else scores > above)
    ordered = top[np.lexsort((top, -scores[top]))][:k]
    return [(int(position), float(scores[position])) for position in ordered]


def _reached(scores: np.ndarray[Any, Any], k: int) -> float:
    """Return a score that k passages or more reach; of many passages only the best of each block are put into order."""
    import numpy as np

    blocks = len(scores) // _BLOCK
    highest = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(1) if blocks >= k else scores
    return float(np.partition(highest, -k)[-k])
