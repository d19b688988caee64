"""How PLAID prunes candidates by the scores of their centroids (Santhanam et al., CIKM 2022, section 4), on a CPU.

A candidate's score is the sum, over the tokens of a query, of the best score among its centroids. colbert-ai goes
through all codes of every candidate, twice. Here the first stage reads the lists of the few centroids that count in it;
the second gathers the scores of all centroids of the few candidates that are left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_NOTHING = -9999.0
"""The score of a token for a passage that has none of the centroids; colbert-ai's."""
_NUMBERS_TOGETHER = 1 << 21
"""Scores of centroids that are in memory at once: 8 MB."""


def by_lists(
    candidates: torch.Tensor, passages: torch.Tensor, lengths: torch.Tensor, scores: torch.Tensor, count: int
) -> torch.Tensor:
    """Return the (candidates,) scores by some centroids alone.

    Args:
        candidates: their positions.
        passages: (entries,) the centroids' lists of passages, one after the other.
        lengths: (centroids,) of each list.
        scores: (centroids, tokens) of these centroids.
        count: of all passages.
    """
    import torch

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
        scores: of each.
        count: of those that are returned.
    """
    order = scores.flip(0).sort(descending=True, stable=True).indices[:count]
    return passages.flip(0)[order]
