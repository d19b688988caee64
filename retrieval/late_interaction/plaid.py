"""PLAID (Santhanam et al., CIKM 2022) through colbert-ai: late interaction over compressed embeddings."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ..base import Hits, NeuralRetriever, batched
from ..contracts import Passages
from ..indexes.contents import IndexManifest, PassageStore
from ..indexes.index_kind import IndexKind, Order, WrittenIndex
from .colbert_ai import colbert_ready
from .embeddings import FOLDER as EMBEDDINGS
from .embeddings import Embeddings, encode, encoder_of
from .encoder import Encoder
from .plaid_scorer import open_scorer
from .plaid_writer import PlaidSettings, write_plaid

PLAID_FOLDER = "plaid"
_QUERIES_TOGETHER = 32


class PlaidRetriever(NeuralRetriever):
    """A PLAID index and its encoder. Searches run one at a time; colbert-ai parallelises each."""

    name = "colbert"

    def __init__(
        self, passages: Passages, fingerprint: str, encoder: Encoder, scorer: Any, settings: PlaidSettings
    ) -> None:
        super().__init__(passages, fingerprint, encoder)
        self._scorer = scorer
        self._settings = settings
        self._lock = threading.Lock()

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        embedded = chain.from_iterable(map(self.encoder.queries, batched(queries, _QUERIES_TOGETHER)))
        return [self._ranked(query[None], k) for query in embedded]

    def _ranked(self, query: Any, k: int) -> Hits:
        """Return the k best candidates; if the probed cells hold fewer than k passages, more cells are probed."""
        cells, centroids = self._settings.ncells, len(self._scorer.codec.centroids)
        with self._lock:
            positions, scores = self._scorer.rank(self._config(k, cells), query)
            while len(positions) < k and cells < centroids:
                cells = min(8 * cells, centroids)
                positions, scores = self._scorer.rank(self._config(k, cells), query)
        return [(int(position), float(score)) for position, score in zip(positions[:k], scores[:k], strict=True)]

    def _config(self, k: int, cells: int) -> Any:
        """Return all three settings of a search, every time: otherwise colbert-ai keeps the first search's."""
        from colbert.infra import ColBERTConfig

        return ColBERTConfig(
            ncells=cells,
            centroid_score_threshold=self._settings.centroid_score_threshold,
            ndocs=max(self._settings.ndocs, 4 * k),
            query_maxlen=self.encoder.longest_query,  # colbert-ai looks for candidates with so many tokens
            interaction="colbert",
        )


def _write(order: Order) -> WrittenIndex:
    settings = order.settings or PlaidSettings()
    written = encode(order)
    embeddings = Embeddings(order.folder / EMBEDDINGS, len(order.passages))
    write_plaid(order.folder / PLAID_FOLDER, embeddings, settings, order.report)
    return replace(written, settings=written.settings | asdict(settings))


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore) -> PlaidRetriever:
    encoder = encoder_of(folder, manifest)
    with colbert_ready():
        scorer = open_scorer(folder / PLAID_FOLDER)
    return PlaidRetriever(passages, manifest.fingerprint, encoder, scorer, PLAID.stored(manifest))


PLAID = IndexKind(
    "colbert",
    "late interaction over embeddings compressed by PLAID, for large corpora",
    _write,
    _load,
    settings=PlaidSettings,
    work=EMBEDDINGS,
    cannot_add="its centroids are trained on the passages it holds, and those of a larger corpus would be others",
)
