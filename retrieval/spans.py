"""Reading a span out of start and end logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def best_span(start: torch.Tensor, end: torch.Tensor, longest: int) -> tuple[int, int] | None:
    """The span of at most ``longest`` tokens, end not before start, whose two logits sum highest.

    Args:
        start: (tokens,) logits; -inf where no span may begin.
        end: (tokens,) logits; -inf where no span may end.

    Returns:
        First and last token, or None where no span is allowed.
    """
    import torch

    sums = start[:, None] + end[None, :]
    allowed = torch.ones_like(sums, dtype=torch.bool).triu().tril(longest - 1)
    sums = sums.masked_fill(~allowed, float("-inf"))
    flat = int(sums.argmax())
    if not torch.isfinite(sums.flatten()[flat]):
        return None
    return divmod(flat, len(end))
