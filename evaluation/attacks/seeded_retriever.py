"""A retriever whose corpus also holds planted passages, which have to be found like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...retrieval import BM25Retriever, LinkedRetriever, NeuralRetriever, Passage, Retriever, WrappingRetriever
from ...retrieval.linked.links import Links
from ..identity import digest


def seeded(retriever: Retriever, planted: Sequence[Passage]) -> Retriever:
    """Return the retriever over its corpus with the planted passages in it.

    BM25 is indexed again, so that words have the weights of the new corpus, and links are made again. A retriever with
    an encoder scores planted passages as it does the others (over a compressed index, those of the others are
    approximations). For any other, BM25 over the planted and the found passages says where the planted ones stand.
    """
    if not planted:
        return retriever
    fingerprint = digest([retriever.fingerprint, [passage.model_dump(exclude={"score"}) for passage in planted]])
    if isinstance(retriever, BM25Retriever):
        return _indexed_anew(retriever, planted, fingerprint)
    if isinstance(retriever, LinkedRetriever):
        words = _indexed_anew(retriever.words, planted, fingerprint)
        return LinkedRetriever(seeded(retriever.base, planted), words, Links.of_passages(words), retriever.choice)
    return SeededRetriever(retriever, planted, fingerprint)


def _indexed_anew(retriever: BM25Retriever, planted: Sequence[Passage], fingerprint: str) -> BM25Retriever:
    genuine = map(retriever.passages.__getitem__, range(len(retriever.passages)))
    corpus = {passage.id: passage for passage in (*genuine, *planted)}
    indexed = BM25Retriever.from_passages(corpus.values(), retriever.settings)
    indexed.fingerprint = fingerprint
    return indexed


class SeededRetriever(WrappingRetriever):
    """A retriever whose results are mixed with planted passages by score."""

    def __init__(self, retriever: Retriever, planted: Sequence[Passage], fingerprint: str) -> None:
        super().__init__([retriever], retriever.name, fingerprint)
        self.planted = list(planted)
        self._replaced = {passage.id for passage in planted}
        self._encoder: Any = retriever.encoder if isinstance(retriever, NeuralRetriever) else None
        self._embedded: list[Any] | None = None

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return a list of passages for each query."""
        found = self.members[0].batch(queries, k + len(self._replaced) if k > 0 else k)
        return [self._mixed(query, genuine, k) for query, genuine in zip(queries, found, strict=True)]

    def _mixed(self, query: str, found: list[Passage], k: int) -> list[Passage]:
        genuine = [passage for passage in found if passage.id not in self._replaced]
        if self._encoder is None:
            return self._placed(query, genuine[:k])[:k]
        pairs = zip(self.planted, self._scores(query), strict=True)
        scored = [passage.model_copy(update={"score": score}) for passage, score in pairs]
        return sorted([*genuine, *scored], key=lambda passage: -passage.score)[:k]

    def _scores(self, query: str) -> list[float]:
        """Return ColBERT's MaxSim of each planted passage; for single vectors it is their product."""
        import torch

        if self._embedded is None:
            self._embedded = list(self._encoder.passages([passage.shown() for passage in self.planted]))
        tokens = torch.atleast_2d(self._encoder.queries([query])[0])
        return [float((tokens @ passage.float().T).max(1).values.sum()) for passage in self._embedded]

    def _placed(self, query: str, genuine: list[Passage]) -> list[Passage]:
        """Return the genuine passages in their order, and each planted one before the first with a lower BM25 score."""
        small = BM25Retriever.from_passages([*genuine, *self.planted])
        scores = dict.fromkeys((passage.id for passage in (*genuine, *self.planted)), 0.0)  # 0 if BM25 does not find it
        scores |= {passage.id: passage.score for passage in small(query, k=len(scores))}
        waiting = sorted(self.planted, key=lambda passage: -scores[passage.id])
        mixed: list[Passage] = []
        for passage in genuine:
            while waiting and scores[waiting[0].id] > scores[passage.id]:
                mixed.append(waiting.pop(0).model_copy(update={"score": passage.score}))
            mixed.append(passage)
        return [*mixed, *waiting]
