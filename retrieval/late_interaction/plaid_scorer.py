"""Scoring an index's passages, with colbert-ai's IndexScorer and its C++ functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_TOGETHER = 1024
"""Candidates whose embeddings are in memory at once: 64 MB of 128 dimensions. Fewer at a time are slower."""


def open_scorer(folder: Path) -> Any:
    """colbert-ai's IndexScorer of an index, on the GPU where there is one.

    On a CPU it gives the same scores in less time and in bounded memory: so many candidates are decompressed at a time,
    and their dot products are divided by their lengths, where colbert-ai normalises a second array of all embeddings.

    Raises:
        Exception: of any kind, where a file of the index is damaged, as colbert-ai checks nothing.
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
            near = centroid_scores.max(-1).values >= config.centroid_score_threshold
            kept = self.filter_pids(
                pids, centroid_scores, self.embeddings.codes, self.doclens, self.offsets, near, config.ndocs
            )
            return torch.cat([self._scores(Q[0], some) for some in kept.split(_TOGETHER)]), kept

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
