"""A retriever that now and then misses, so that demonstrations also show what to do then."""

from __future__ import annotations

from ...retrieval import Passage, Retriever
from ...retrieval.base import WrappingRetriever
from ...simulate import Mind

_MISSED = 0.2  # of the queries


class UnevenRetriever(WrappingRetriever):
    """Another retriever's passages, where the passage with the answer may stand at any rank, or is missing.

    On a small corpus the right passage always comes first. Demonstrations made of that would teach that a query never
    fails, and that the answer stands in passage 1.

    Args:
        retriever: finds the passages.
        mind: knows which passages hold the answer of a query, and draws what becomes of them.
    """

    def __init__(self, retriever: Retriever, mind: Mind) -> None:
        super().__init__([retriever], f"{retriever.name}, uneven", f"{retriever.fingerprint} uneven {mind.fingerprint}")
        self.mind = mind

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return at most k passages for each query.

        Raises:
            QueryError: as the retriever raises it.
        """
        found = self.members[0].batch(queries, k + 1 if k > 0 else k)
        return [self._unevenly(query, passages, k) for query, passages in zip(queries, found, strict=True)]

    def _unevenly(self, query: str, found: list[Passage], k: int) -> list[Passage]:
        holding = [one for one in found if self.mind.holds_answer(query, one.shown())]
        others = [one for one in found if one not in holding]
        if self.mind.rewords(query) and self.mind.chance("missed", query) < _MISSED:
            return others[:k]
        rank = int(self.mind.chance("rank", query) * k)
        ranked = [*others[:rank], *holding, *others[rank:]][:k]
        # scores stay with the ranks, since some programs order passages by them
        return [one.model_copy(update={"score": at.score}) for one, at in zip(ranked, found, strict=False)]
