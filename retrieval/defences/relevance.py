"""A defence by a reader: passages in which it finds no answer to the query are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..contracts import Reader, Retriever, Span
from ..passage import Passage
from .filtering import FilteringRetriever


class RelevanceRetriever(FilteringRetriever):
    """Another retriever's passages, without those that a reader scores below its threshold; the next best follow.

    A planted passage is made to be found, and argues; whether it answers the query is another question, and one that
    a reader was trained on. Genuine passages that lead to the answer without holding it are left out as well: a
    program that asks one fact at a time loses less by that than one that searches with the whole question.

    Args:
        retriever: finds the passages.
        reader: scores them; a trained one, as it reads every passage of every query.
    """

    def __init__(self, retriever: Retriever, reader: Reader) -> None:
        rule = f"relevance 1 {reader.name} {reader.threshold}"
        super().__init__(retriever, f"{retriever.name} with a reader's consent", rule)
        self.reader = reader

    def kept(self, queries: list[str], found: list[list[Passage]]) -> list[list[Passage]]:
        """Those that the reader scores at its threshold or above."""
        pairs = [(query, passage) for query, passages in zip(queries, found, strict=True) for passage in passages]
        spans = iter(_read(self.reader, pairs))
        return [[passage for passage in passages if _consents(self.reader, next(spans))] for passages in found]


def _read(reader: Reader, pairs: Sequence[tuple[str, Passage]]) -> list[Span]:
    """Together, where the reader can."""
    together: Callable[..., list[Span]] | None = getattr(reader, "read_many", None)
    return together(pairs) if together else [reader(query, passage) for query, passage in pairs]


def _consents(reader: Reader, span: Span) -> bool:
    return span.score >= reader.threshold
