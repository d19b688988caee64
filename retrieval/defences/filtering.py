"""What the defences share: more is found than is asked for, and what looks planted is left out of it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ..contracts import Retriever
from ..passage import Passage

_FURTHER = 10


class FilteringRetriever(ABC):
    """Another retriever's passages, without some; the next best take their places. A subclass says which.

    Args:
        retriever: finds the passages.
        name: of both together.
        rule: what the choice hangs on; another rule gives another fingerprint.
    """

    def __init__(self, retriever: Retriever, name: str, rule: str) -> None:
        self.retriever, self.name = retriever, name
        self.fingerprint = hashlib.sha256(f"{rule} {retriever.fingerprint}".encode()).hexdigest()[:16]
        similarity: Callable[..., Any] | None = getattr(retriever, "similarity", None)
        if similarity is not None:
            self.similarity = similarity

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        """At most k passages, best first.

        Raises:
            QueryError: as the retriever.
        """
        return self.batch([query], k)[0]

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """One list of passages for each query."""
        found = self.retriever.batch(queries, k + _FURTHER if k > 0 else k)
        return [passages[:k] for passages in self.kept(queries, found)]

    @abstractmethod
    def kept(self, queries: list[str], found: list[list[Passage]]) -> list[list[Passage]]:
        """Of the passages found for each query those that stay, in their order."""
