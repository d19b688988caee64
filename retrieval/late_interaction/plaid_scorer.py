"""Scoring an index's passages, with colbert-ai's IndexScorer and its C++ functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def open_scorer(folder: Path) -> Any:
    """colbert-ai's IndexScorer of an index, on the GPU where there is one.

    On a CPU candidates are not normalised before they are scored: their dot products are divided by their lengths
    afterwards, which spares a second array of all their embeddings.

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
            codec = self.codec
            near = centroid_scores.max(-1).values >= config.centroid_score_threshold
            codes = self.embeddings.codes
            kept = self.filter_pids(pids, centroid_scores, codes, self.doclens, self.offsets, near, config.ndocs)
            embeddings = self.decompress_residuals(
                kept,
                self.doclens,
                self.offsets,
                codec.bucket_weights,
                codec.reversed_bit_map,
                codec.decompression_lookup_table,
                self.embeddings.residuals,
                codes,
                codec.centroids,
                codec.dim,
                codec.nbits,
            )
            products = (embeddings @ Q[0].T) / torch.linalg.vector_norm(embeddings, dim=1, keepdim=True)
            return ColBERT.segmented_maxsim(products, self.doclens[kept.long()]), kept

    return Scorer(str(folder), use_gpu=torch.cuda.is_available())
