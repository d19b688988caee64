"""Has this query been asked before? Each check gives the index of the seen query that it repeats, or None."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .hub import load_model

DEFAULT_MODEL = "cross-encoder/quora-distilroberta-base"
_NOT_WORDS = re.compile(r"[\W_]+")


class ExactDuplicates:
    """Equal but for case, punctuation and space."""

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """The first seen query that this one repeats."""
        wanted = _words(query)
        return next((index for index, other in enumerate(seen) if _words(other) == wanted), None)


class CrossEncoderDuplicates:
    """A cross-encoder trained on duplicate questions, as SearChain's authors use. Made by ``load``; thread-safe."""

    def __init__(self, name: str, threshold: float, model: Any, tokenizer: Any) -> None:
        self.name = name
        self.threshold = threshold
        self._model = model
        self._tokenizer = tokenizer
        self._lock = threading.Lock()

    @classmethod
    def load(
        cls, model: str | Path = DEFAULT_MODEL, *, threshold: float = 0.5, device: str | None = None
    ) -> CrossEncoderDuplicates:
        """Load a cross-encoder by hub name or folder.

        Args:
            model: a sequence classifier; of two classes or more the last one means duplicate.
            threshold: the probability from which two queries count as the same.
            device: by default the GPU where there is one.

        Raises:
            CheckpointError: it cannot be found, fetched or loaded.
        """
        loaded, tokenizer, _ = load_model("AutoModelForSequenceClassification", model, device=device)
        return cls(str(model), threshold, loaded, tokenizer)

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """The seen query most like this one, if likely enough the same."""
        if not seen:
            return None
        probabilities = self.probabilities(query, seen)
        best = max(range(len(seen)), key=probabilities.__getitem__)
        return best if probabilities[best] >= self.threshold else None

    def probabilities(self, query: str, seen: Sequence[str]) -> list[float]:
        """How likely each seen query is the same question as this one."""
        import torch

        with self._lock, torch.inference_mode():
            encoded = self._tokenizer(
                [query] * len(seen),
                list(seen),
                padding=True,
                truncation="longest_first",
                max_length=256,
                return_tensors="pt",
            )
            logits = self._model(**encoded.to(self._model.device)).logits.float()
        of_duplicate = logits.sigmoid()[:, 0] if logits.shape[1] == 1 else logits.softmax(-1)[:, -1]
        return [float(probability) for probability in of_duplicate]


def _words(text: str) -> str:
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
