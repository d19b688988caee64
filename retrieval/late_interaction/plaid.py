"""PLAID (Santhanam et al., CIKM 2022) through colbert-ai: late interaction over compressed embeddings."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import IndexRefused
from ..base import Hits, NeuralRetriever
from ..contracts import Passages
from ..indexes.contents import IndexManifest, PassageStore
from ..indexes.index_kind import IndexKind, Order, Written
from .compat import colbert_ready, load_extensions
from .embeddings import FOLDER as EMBEDDINGS
from .embeddings import Embeddings, encode, encoder_of
from .encoder import Encoder
from .plaid_candidates import best_of, by_lists
from .plaid_codec import PlaidSettings
from .plaid_writer import write_plaid

if TYPE_CHECKING:
    import torch

PLAID_FOLDER = "plaid"
_CODE_BYTES = 8
"""Beside the residual: the number of an embedding's centroid, and the place of its passage in the centroid's list."""
_QUERIES_TOGETHER = 32
_CANDIDATES_TOGETHER = 1024
"""Candidates whose embeddings are in memory at once: 64 MB of 128 dimensions. Fewer at a time are slower."""


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
        """Load the index that ``write_plaid`` left in a folder, on the GPU if there is one.

        Raises:
            IndexRefused: if a file of it cannot be read, or would have to be unpickled.
            QuestreeError: if there is no C++ compiler (see ``load_extensions``).
        """
        load_extensions()
        with colbert_ready():
            try:
                scorer = _open_scorer(folder / PLAID_FOLDER)
            except Exception as problem:  # colbert-ai checks nothing, so damage shows in any way
                raise IndexRefused(f"{folder} is damaged: colbert-ai cannot read it ({problem}).") from problem
        return cls(passages, fingerprint, encoder, scorer, settings)

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        together = (queries[first : first + _QUERIES_TOGETHER] for first in range(0, len(queries), _QUERIES_TOGETHER))
        return [self._ranked(embedded[None], k) for some in together for embedded in self.encoder.queries(some)]

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


def _open_scorer(folder: Path) -> Any:
    """Return colbert-ai's IndexScorer of an index, on the GPU if there is one.

    On a CPU it gives the same scores in less time and in bounded memory: ``plaid_candidates`` prunes, some are
    decompressed at a time, and their dot products are divided by their lengths; colbert-ai normalises a second array
    of all embeddings.

    Raises:
        Exception: of any kind, if a file of the index is damaged: colbert-ai checks nothing.
    """
    import torch
    from colbert.modeling.colbert import ColBERT
    from colbert.search.index_storage import IndexScorer

    class Scorer(IndexScorer):
        def score_pids(
            self, config: Any, Q: torch.Tensor, pids: torch.Tensor, centroid_scores: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            if self.use_gpu:
                scored: tuple[torch.Tensor, torch.Tensor] = super().score_pids(config, Q, pids, centroid_scores)
                return scored
            kept = self._pruned(config, pids, centroid_scores)
            return torch.cat([self._scores(Q[0], some) for some in kept.split(_CANDIDATES_TOGETHER)]), kept

        def _pruned(self, config: Any, pids: torch.Tensor, centroid_scores: torch.Tensor) -> torch.Tensor:
            """Return the candidates that are scored in full: the same as colbert-ai's ``filter_pids`` leaves."""
            near = (centroid_scores.max(-1).values >= config.centroid_score_threshold).nonzero().squeeze(1)
            listed, lengths = self.ivf.lookup(near)
            first = by_lists(pids, listed, lengths, centroid_scores[near], len(self.doclens))
            kept = best_of(pids, first, config.ndocs).sort().values
            raised = centroid_scores + 1  # colbert-ai's maximum begins at 0, a score at -1
            second = [self._by_codes(raised, some) for some in kept.split(_CANDIDATES_TOGETHER)]
            return best_of(kept, torch.cat(second), config.ndocs // 4)

        def _by_codes(self, centroid_scores: torch.Tensor, pids: torch.Tensor) -> torch.Tensor:
            codes, lengths = self.embeddings_strided.lookup_codes(pids)
            scores: torch.Tensor = ColBERT.segmented_maxsim(centroid_scores.index_select(0, codes), lengths)
            return scores

        def _scores(self, query: torch.Tensor, pids: torch.Tensor) -> torch.Tensor:
            codec = self.codec
            embeddings = self.decompress_residuals(
                pids,
                self.doclens,
                self.offsets,
                codec.bucket_weights,
                codec.reversed_bit_map,
                codec.decompression_lookup_table,
                self.embeddings.residuals,
                self.embeddings.codes,
                codec.centroids,
                codec.dim,
                codec.nbits,
            )
            products = (embeddings @ query.T) / torch.linalg.vector_norm(embeddings, dim=1, keepdim=True)
            scores: torch.Tensor = ColBERT.segmented_maxsim(products, self.doclens[pids.long()])
            return scores

    return Scorer(str(folder), use_gpu=torch.cuda.is_available())


def _write(order: Order) -> Written:
    settings = order.settings or PlaidSettings()
    load_extensions()
    encoder, written = encode(order, row_bytes=lambda dim: dim * settings.nbits / 8 + _CODE_BYTES)
    embeddings = Embeddings(order.folder / EMBEDDINGS, encoder.dim, len(order.passages))
    write_plaid(order.folder / PLAID_FOLDER, embeddings, encoder, settings, order.report)
    return replace(written, settings={**written.settings, "plaid": asdict(settings)})


def _load(
    folder: Path, manifest: IndexManifest, passages: PassageStore, checkpoint: str | Path | None
) -> PlaidRetriever:
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
    cannot_add="its centroids are trained on the passages it holds, and those of a larger corpus would be others",
)
