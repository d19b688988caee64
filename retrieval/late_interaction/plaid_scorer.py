"""How PLAID finds and scores candidates (Santhanam et al., CIKM 2022, section 4), through colbert-ai.

A candidate's first score is the sum, over the tokens of a query, of the best score among its centroids. colbert-ai goes
through all codes of every candidate, twice. Here, on a CPU, the first stage reads the lists of the few centroids that
count in it; the second gathers the scores of all centroids of the few candidates that are left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from .colbert_ai import decompressed

_NOTHING = -9999.0
"""The score of a token for a passage that has none of the centroids; colbert-ai's."""
_NUMBERS_TOGETHER = 1 << 21
"""Scores of centroids that are in memory at once: 8 MB."""
_CANDIDATES_TOGETHER = 1024
"""Candidates whose embeddings are in memory at once: 64 MB of 128 dimensions. Fewer at a time are slower."""


def open_scorer(folder: Path) -> Any:
    """Return colbert-ai's IndexScorer of an index, on the GPU if there is one.

    On a CPU it gives the same scores in less time and in bounded memory: candidates are pruned by lists, some are
    decompressed at a time, and their dot products are divided by their lengths; colbert-ai normalises a second array
    of all embeddings. Call it inside `colbert_ready`.

    Raises:
        Exception: of any kind, if a file of the index is damaged: colbert-ai checks nothing.
    """
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
            return sum_of_maxima(centroid_scores.index_select(0, codes), lengths)

        def _scores(self, query: torch.Tensor, pids: torch.Tensor) -> torch.Tensor:
            codec = self.codec
            codes, lengths = self.embeddings_strided.lookup_codes(pids)
            residuals, _ = self.embeddings_strided.residuals_strided.lookup(pids)
            tables = (codec.bucket_weights, codec.reversed_bit_map, codec.decompression_lookup_table)
            rows = decompressed(residuals, *tables, codes, codec.centroids)
            return sum_of_maxima((rows @ query.T) / torch.linalg.vector_norm(rows, dim=1, keepdim=True), lengths)

    return Scorer(str(folder), use_gpu=torch.cuda.is_available())


def sum_of_maxima(scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return (passages,): for each token its highest score in the passage, 0 at least, summed.

    Args:
        scores: (rows, tokens), one passage's rows after the other's.
        lengths: (passages,) the number of rows of each, one at least.
    """
    best = np.maximum.reduceat(scores.numpy(), (lengths.cumsum(0) - lengths).numpy(), axis=0)
    return torch.from_numpy(best).clamp_(min=0).sum(1)


def by_lists(
    candidates: torch.Tensor, passages: torch.Tensor, lengths: torch.Tensor, scores: torch.Tensor, count: int
) -> torch.Tensor:
    """Return the (candidates,) scores by some centroids alone.

    Args:
        passages: (entries,) the centroids' lists of passages, one after the other.
        lengths: (centroids,) of each list.
        scores: (centroids, tokens) of these centroids.
    """
    places = torch.full((count,), -1)
    places[candidates.long()] = torch.arange(len(candidates))
    place = places[passages.long()]
    listed = (place >= 0).nonzero().squeeze(1)
    place, centroid = place[listed], torch.arange(len(lengths)).repeat_interleave(lengths)[listed]
    best = torch.full((len(candidates), scores.shape[1]), _NOTHING)
    some = max(1, _NUMBERS_TOGETHER // scores.shape[1])
    for of_place, of_centroid in zip(place.split(some), centroid.split(some), strict=True):
        best.scatter_reduce_(
            0, of_place[:, None].expand(-1, scores.shape[1]), scores.index_select(0, of_centroid), "amax"
        )
    return best.sum(1)


def best_of(passages: torch.Tensor, scores: torch.Tensor, count: int) -> torch.Tensor:
    """Return the best passages, best first; of equal ones that with the higher position, as colbert-ai does.

    Args:
        passages: ascending positions.
        count: of those that are returned.
    """
    order = scores.flip(0).sort(descending=True, stable=True).indices[:count]
    return passages.flip(0)[order]
