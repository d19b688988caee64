"""PLAID (Santhanam et al., CIKM 2022) through colbert-ai: late interaction over compressed embeddings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...common.errors import IndexRefused, QuestreeError
from ..base import Hits, NeuralRetriever
from ..contracts import Passages
from ..indexes.index_kind import IndexKind, Order, Written
from ..indexes.manifest import Manifest
from ..indexes.store import PassageStore
from .compat import colbert_ready, load_extensions
from .embeddings import FOLDER as EMBEDDINGS
from .embeddings import encode, encoder_of
from .encoder import Encoder
from .plaid_scorer import open_scorer

logger = logging.getLogger(__name__)

PLAID_FOLDER = "plaid"
_CODE_BYTES = 8
"""Beside its residual, an embedding has its centroid's number, and its passage a place in that centroid's list."""
_QUERIES_TOGETHER = 32


@dataclass(frozen=True)
class PlaidSettings:
    """How embeddings are compressed, and how far a search looks.

    Attributes:
        nbits: bits a dimension of a residual: 1, 2, 4 or 8.
        kmeans_iterations: of the centroids' training.
        ncells: centroids that are probed for each query token.
        centroid_score_threshold: a centroid below it is ignored when candidates are pruned.
        ndocs: candidates that survive the first pruning; a quarter of them is scored in full.

    Raises:
        QuestreeError: another number of bits.
    """

    nbits: int = 8
    kmeans_iterations: int = 4
    ncells: int = 4
    centroid_score_threshold: float = 0.45
    ndocs: int = 1024

    def __post_init__(self) -> None:
        if self.nbits not in (1, 2, 4, 8):
            raise QuestreeError(f"PLAID stores 1, 2, 4 or 8 bits a dimension (nbits), not {self.nbits}.")


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

    @classmethod
    def load(
        cls, folder: Path, passages: Passages, fingerprint: str, encoder: Encoder, settings: PlaidSettings
    ) -> PlaidRetriever:
        """The index that ``write_plaid`` left in a folder, on the GPU where there is one.

        Raises:
            IndexRefused: a file of it cannot be read, or would have to be unpickled.
            QuestreeError: no C++ compiler (see ``load_extensions``).
        """
        load_extensions()
        with colbert_ready():
            try:
                scorer = open_scorer(folder / PLAID_FOLDER)
            except Exception as problem:  # colbert-ai checks nothing, so damage shows in any way
                raise IndexRefused(f"{folder} is damaged: colbert-ai cannot read it ({problem}).") from problem
        return cls(passages, fingerprint, encoder, scorer, settings)

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        together = (queries[first : first + _QUERIES_TOGETHER] for first in range(0, len(queries), _QUERIES_TOGETHER))
        return [self._ranked(embedded[None], k) for some in together for embedded in self.encoder.queries(some)]

    def _ranked(self, query: Any, k: int) -> Hits:
        """The k best candidates; where the probed cells hold fewer than k passages, more cells are probed."""
        cells, centroids = self._settings.ncells, len(self._scorer.codec.centroids)
        with self._lock:
            positions, scores = self._scorer.rank(self._config(k, cells), query)
            while len(positions) < k and cells < centroids:
                cells = min(8 * cells, centroids)
                positions, scores = self._scorer.rank(self._config(k, cells), query)
        return [(int(position), float(score)) for position, score in zip(positions[:k], scores[:k], strict=True)]

    def _config(self, k: int, cells: int) -> Any:
        """All three settings of a search, every time: colbert-ai keeps the first search's for the process."""
        from colbert.infra import ColBERTConfig

        return ColBERTConfig(
            ncells=cells,
            centroid_score_threshold=self._settings.centroid_score_threshold,
            ndocs=max(self._settings.ndocs, 4 * k),
            query_maxlen=512,
            interaction="colbert",
        )


def _write(order: Order) -> Written:
    from .plaid_building import write_plaid

    settings = order.settings or PlaidSettings()
    load_extensions()
    encoder, embeddings, written = encode(order, lambda dim: dim * settings.nbits / 8 + _CODE_BYTES)
    write_plaid(order.folder / PLAID_FOLDER, embeddings, encoder, settings, order.report)
    return replace(written, settings={**written.settings, "plaid": asdict(settings)})


def _load(folder: Path, manifest: Manifest, passages: PassageStore, checkpoint: str | Path | None) -> PlaidRetriever:
    settings = PlaidSettings(**manifest.settings["plaid"])
    encoder = encoder_of(folder, manifest, checkpoint)
    return PlaidRetriever.load(folder, passages, manifest.fingerprint, encoder, settings)


PLAID = IndexKind(
    "colbert",
    "late interaction over embeddings compressed by PLAID, for large corpora",
    _write,
    _load,
    settings=PlaidSettings,
    work=EMBEDDINGS,
    keeps_work=False,
    cannot_add="its centroids are trained on the passages it holds, and those of a larger corpus would be others",
)
