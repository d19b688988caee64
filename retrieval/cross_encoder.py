"""Cross-encoders: models that read two texts together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from .encoders import load_model

_LONGEST = 512  # tokens of a pair


class PairModel:
    """A sequence classifier of transformers over pairs of texts; safe in several threads.

    Args:
        longest: the most tokens of a pair, if the model takes so many.
    """

    def __init__(self, model: Any, tokenizer: Any, longest: int = _LONGEST) -> None:
        self.model, self._tokenizer, self._lock = model, tokenizer, threading.Lock()
        room = getattr(model.config, "max_position_embeddings", _LONGEST)
        self._longest = min(longest, tokenizer.model_max_length, room)

    @classmethod
    def load(cls, model: str | Path, longest: int = _LONGEST) -> PairModel:
        """Load a model by hub name or folder."""
        loaded, tokenizer = load_model("AutoModelForSequenceClassification", model)
        return cls(loaded, tokenizer, longest)

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
