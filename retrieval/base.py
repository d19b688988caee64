"""What all retrievers share: a query is checked, batched and turned into passages in one place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..common.errors import QueryError
from .passage import Passage

if TYPE_CHECKING:
    import numpy as np

Hits = list[tuple[int, float]]
"""Positions in the corpus with their scores, best first."""
_HITS_KEPT = 20_000


class Passages(Protocol):
    """A corpus by position: a list, or a ``PassageStore``."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> Passage: ...


class BaseRetriever(ABC):
    """A retriever over passages known by position. A subclass says how to find positions."""

    name: str

    def __init__(self, passages: Passages, fingerprint: str) -> None:
        self.passages = passages
        self.fingerprint = fingerprint
        self._known: dict[tuple[str, int], Hits] = {}

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        """The k best passages, best first.

        Raises:
            QueryError: the query is empty, or k is not positive.
        """
        return self.batch([query], k)[0]

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """One list of passages for each query, as single calls would give.

        Raises:
            QueryError: a query is empty, or k is not positive.
        """
        checked = check_search(queries, k)
        if not checked:
            return []
        found = self._remembered(checked, min(k, len(self.passages)))
        return [[self._passage(position, score) for position, score in hits] for hits in found]

    def _remembered(self, queries: Sequence[str], k: int) -> list[Hits]:
        """The hits of each query; an index does not change, and programs that are compared ask much the same."""
        if len(self._known) > _HITS_KEPT:
            self._known.clear()
        known = {query: self._known.get((query, k)) for query in queries}
        new = [query for query, hits in known.items() if hits is None]
        found = dict(zip(new, self._search(new, k), strict=True)) if new else {}
        self._known.update({(query, k): hits for query, hits in found.items()})
        return [found[query] if query in found else known[query] or [] for query in queries]

    def _passage(self, position: int, score: float) -> Passage:
        return self.passages[position].model_copy(update={"score": score})

    @abstractmethod
    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        """The hits of each query; ``1 <= k <= len(self.passages)``. Called from several threads at once."""


def check_search(queries: Sequence[str], k: int) -> list[str]:
    """The queries, each as ``check_query`` leaves it.

    Raises:
        QueryError: a query is empty, or k is not positive.
    """
    if k < 1:
        raise QueryError(f"{k} passages were asked for; ask for one at least.")
    return [check_query(query) for query in queries]


def check_query(query: str) -> str:
    """The query without surrounding space and without halves of surrogate pairs, which no tokenizer reads.

    An overlong one is left whole: an encoder reads as much of it as its window holds.

    Raises:
        QueryError: nothing is left, or it is not text.
    """
    if not isinstance(query, str):
        raise QueryError(f"A query must be text, not {type(query).__name__}.")
    cleaned = query.encode(errors="replace").decode().strip()
    if not cleaned:
        raise QueryError("The query is empty. Ask for something.")
    return cleaned


def best(scores: np.ndarray[Any, Any], k: int) -> Hits:
    """The k highest of one query's scores (passages,), best first; of equal ones the earlier passage first."""
    import numpy as np

    top = np.arange(len(scores)) if k >= len(scores) else np.argpartition(-scores, k - 1)[:k]
    ordered = top[np.lexsort((top, -scores[top]))]
    return [(int(position), float(scores[position])) for position in ordered]
