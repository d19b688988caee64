"""Cross-encoders: models that read two texts together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import torch

from .encoders import load_model

_LONGEST = 512  # tokens of a pair


class PairModel:
    """A sequence classifier of transformers over pairs of texts; safe in several threads.

    Args:
        name: a hub name, or a folder.
        longest: the most tokens of a pair, if the model takes so many.
    """

    def __init__(self, name: str | Path, longest: int = _LONGEST) -> None:
        self.model, self._tokenizer = load_model("AutoModelForSequenceClassification", name)
        room = getattr(self.model.config, "max_position_embeddings", _LONGEST)
        self._longest = min(longest, self._tokenizer.model_max_length, room)
        self._lock = threading.Lock()

    def logits(self, text: str, others: Sequence[str]) -> torch.Tensor:
        """Return the (others, classes) logits of a text with each other text."""
        with self._lock, torch.inference_mode():
            encoded = self._tokenizer(
                [text] * len(others),
                list(others),
                padding=True,
                truncation="longest_first",
                max_length=self._longest,
                return_tensors="pt",
            )
            logits: torch.Tensor = self.model(**encoded.to(self.model.device)).logits.float()
        return logits
