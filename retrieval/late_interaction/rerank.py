"""Gather and rerank: BM25 finds candidates, and late interaction over their stored embeddings puts them into order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass

from ..base import Hits, IndexRetriever, NeuralRetriever, batched, best
from ..bm25 import BM25
from ..indexes.contents import IndexManifest, PassageStore
from ..indexes.index_kind import IndexKind, Order, WrittenIndex
from .checkpoint import late_checkpoint
from .embeddings import Embeddings, encode, encoder_of
from .encoder import Encoder
from .packed_rows import Packing

FOLDER = "packed"
_TOGETHER = 256
"""Candidates whose embeddings are in memory at once: 14 MB of 128 dimensions."""


@dataclass(frozen=True)
class RerankSettings:
    """How many passages are gathered, and how their embeddings are stored.

    Attributes:
        candidates: passages that BM25 gathers for a query; as many as are asked for, if those are more.
        nbits: the bits for each dimension of an embedding: 1, 2, 4 or 8.

    Raises:
        ValidationError: if either is another.
    """

    candidates: PositiveInt = 100
    nbits: Literal[1, 2, 4, 8] = 4


class GatherAndRerank(NeuralRetriever):
    """Another index's best passages in the order of ColBERT's MaxSim (Khattab and Zaharia, SIGIR 2020, section 3.6).

    A search reads and scores as many passages as are gathered, however large the corpus. What the first index does not
    find, such as a passage without any word of the query, is not found here either.

    Its fingerprint is that of the first index, which is one with it.
    """

    name = "rerank"

    def __init__(
        self, gatherer: IndexRetriever, encoder: Encoder, embeddings: Embeddings, settings: RerankSettings
    ) -> None:
        super().__init__(gatherer.passages, gatherer.fingerprint, encoder)
        self.candidates, self._packing = settings.candidates, Packing(encoder.dim, settings.nbits)
        self._gatherer, self._embeddings = gatherer, embeddings

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        count = min(max(k, self.candidates), len(self.passages))
        gathered = self._gatherer._search(queries, count)
        embedded = self.encoder.queries(queries)
        return [self._ranked(query, hits, k) for query, hits in zip(embedded, gathered, strict=True)]

    def _ranked(self, query: torch.Tensor, gathered: Hits, k: int) -> Hits:
        """Return the k best candidates by their scores; of equal ones the earlier passage first."""
        positions = sorted(position for position, _ in gathered)
        if not positions:
            return []
        scores = np.concatenate([self._scores(query, some) for some in batched(positions, _TOGETHER)])
        return [(positions[place], score) for place, score in best(scores, k)]

    def _scores(self, query: torch.Tensor, positions: Sequence[int]) -> np.ndarray[Any, Any]:
        packed = [self._embeddings.of(position) for position in positions]
        return maxsim(query, self._packing.unpacked(np.concatenate(packed)), list(map(len, packed)))


def maxsim(query: torch.Tensor, rows: torch.Tensor, lengths: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return (passages,): for each token of the query its best match in the passage, summed.

    Args:
        query: (tokens, dim).
        rows: (rows, dim), one passage's after the other's.
        lengths: (passages,) the number of rows of each, one at least.
    """
    starts = np.cumsum([0, *lengths[:-1]])
    scores: np.ndarray[Any, Any] = np.maximum.reduceat((rows @ query.T).numpy(), starts, axis=0).sum(1)
    return scores


def _write(order: Order) -> WrittenIndex:
    settings: RerankSettings = order.settings or RerankSettings()
    written = encode(order, FOLDER, settings.nbits)
    gathering = BM25.write(replace(order, settings=None))
    return replace(written, settings=written.settings | asdict(settings) | gathering.settings)


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore) -> GatherAndRerank:
    gatherer, embeddings = BM25.load(folder, manifest, passages), Embeddings(folder / FOLDER, len(passages))
    return GatherAndRerank(gatherer, encoder_of(folder, manifest), embeddings, RERANK.stored(manifest))


RERANK = IndexKind(
    "rerank",
    "BM25 gathers, late interaction over stored embeddings reranks: for corpora of any size",
    _write,
    _load,
    settings=RerankSettings,
    work=FOLDER,
    find=late_checkpoint,
)
