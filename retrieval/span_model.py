"""The input and the best span of DPR's reader (Karpukhin et al., EMNLP 2020, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .passage import Passage


@dataclass(frozen=True)
class ReaderInput:
    """A batch of queries with a passage for each, as a reader's model takes it.

    Attributes:
        tokens: ``input_ids`` and ``attention_mask``, each (pairs, tokens).
        in_text: (pairs, tokens) whether the token is of the passage's text: a span may lie only there.
        offsets: (pairs, tokens, 2) where the token begins and ends in that text, in characters.
    """

    tokens: Any
    in_text: torch.Tensor
    offsets: torch.Tensor


def reader_input(tokenizer: Any, pairs: Sequence[tuple[str, Passage]], window: int) -> ReaderInput:
    """Return ``[CLS] query [SEP] title [SEP] text`` for each pair, cut to the window (DPR, section 6.1).

    Not for two threads at once: the tokenizer keeps the cut as its state.
    """
    encoded = tokenizer(
        [f"{query} {tokenizer.sep_token} {passage.title}" for query, passage in pairs],
        [passage.text for _, passage in pairs],
        truncation="longest_first",
        max_length=window,
        padding=True,
        return_offsets_mapping=True,
        return_tensors="pt",
        return_token_type_ids=False,
        return_attention_mask=True,
    )
    parts = [encoded.sequence_ids(row) for row in range(len(pairs))]
    in_text = torch.tensor([[part == 1 for part in row] for row in parts])
    return ReaderInput(offsets=encoded.pop("offset_mapping"), tokens=encoded, in_text=in_text)


def reader_window(config: Any, wanted: int) -> int:
    """Return so many tokens, or as many as the encoder has positions for; RoBERTa and its kin reserve two."""
    positions = getattr(config, "max_position_embeddings", None)
    return wanted if not positions else min(wanted, positions - 2)


def best_span(start: torch.Tensor, end: torch.Tensor, longest: int) -> tuple[int, int] | None:
    """Return the first and last token of the span whose two logits sum highest, or None if no span is allowed.

    Args:
        start: (tokens,) logits; -inf where no span may begin.
        end: (tokens,) logits; -inf where no span may end.
        longest: the most tokens of a span, whose end is not before its start.
    """
    sums = start[:, None] + end[None, :]
    allowed = torch.ones_like(sums, dtype=torch.bool).triu().tril(longest - 1)
    sums = sums.masked_fill(~allowed, float("-inf"))
    flat = int(sums.argmax())
    if not torch.isfinite(sums.flatten()[flat]):
        return None
    return divmod(flat, len(end))
