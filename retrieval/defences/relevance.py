"""A defence by a reader: passages in which it finds no answer to the query are left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from ..contracts import Reader, Retriever, Span
from ..passage import Passage

_FURTHER = 10


class RelevanceRetriever:
    """Another retriever's passages, without those that a reader scores below its threshold; the next best follow.

    A planted passage is made to be found, and argues; whether it answers the query is another question, and one that
    a reader was trained on. Genuine passages that lead to the answer without holding it are left out as well: a
    program that asks one fact at a time loses less by that than one that searches with the whole question.

    Args:
        retriever: finds the passages.
        reader: scores them; a trained one, as it reads every passage of every query.
    """

    def __init__(self, retriever: Retriever, reader: Reader) -> None:
        self.retriever, self.reader = retriever, reader
        self.name = f"{retriever.name} with a reader's consent"
        content = f"relevance 1 {retriever.fingerprint} {reader.name} {reader.threshold}"
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]
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
        pairs = [(query, passage) for query, passages in zip(queries, found, strict=True) for passage in passages]
        spans = iter(_read(self.reader, pairs))
        return [[passage for passage in passages if _consents(self.reader, next(spans))][:k] for passages in found]


def _read(reader: Reader, pairs: Sequence[tuple[str, Passage]]) -> list[Span]:
    """Together, where the reader can."""
    together: Callable[..., list[Span]] | None = getattr(reader, "read_many", None)
    return together(pairs) if together else [reader(query, passage) for query, passage in pairs]


def _consents(reader: Reader, span: Span) -> bool:
    return span.score >= reader.threshold
