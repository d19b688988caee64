"""Texts as single vectors: Contriever, E5, or any sentence encoder that transformers loads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from .checkpoints import Checkpoint, find_checkpoint, minilm_folder
from .encoders import TextEncoder, load_model, precision_of
from .sentence_usage import Usage

_QUERIES_TOGETHER = 64


def find_sentence_checkpoint(name: str | Path | None = None) -> Checkpoint:
    """Return the encoder of a name; it is on this machine then.

    Args:
        name: None or ``embedded`` for all-MiniLM-L6-v2 as its package holds it; a folder; or a name on the hub, such
            as ``facebook/contriever``, which is downloaded once.
    """
    return find_checkpoint(name, minilm_folder)


class SentenceEncoder(TextEncoder):
    """A model of one vector for each query and each passage. Made by ``load``."""

    def __init__(self, checkpoint: Checkpoint, usage: Usage, precision: str, model: Any, tokenizer: Any) -> None:
        super().__init__(checkpoint, precision, model)
        self.usage, self.window = usage, usage.window
        self._tokenizer = tokenizer
        tokenizer.padding_side = "right"  # batches are cut there

    @classmethod
    def load(cls, checkpoint: Checkpoint, usage: Usage, precision: str = "auto") -> SentenceEncoder:
        """Load an encoder.

        Args:
            checkpoint: of ``find_sentence_checkpoint``.
            usage: of ``find_usage``.
            precision: ``float16`` (GPU), ``bfloat16``, ``float32``. ``auto`` is float16 on a GPU; on a CPU bfloat16
                if it computes with that, else float32.
        """
        model, tokenizer, device = load_model("AutoModel", checkpoint.folder)
        return cls(checkpoint, usage, precision_of(precision, device, "float16"), model, tokenizer)

    @property
    def dim(self) -> int:
        """Return the number of dimensions of a vector."""
        return int(self._model.config.hidden_size)

    @property
    def longest(self) -> int:
        """Return the most tokens of a text that the model can read; the window, if the model has no such bound."""
        return int(getattr(self._model.config, "max_position_embeddings", None) or self.window)

    @property
    def identity(self) -> str:
        """Return all that a passage's vector depends on beside its text."""
        return f"{self.checkpoint.fingerprint} {self.precision} {self.usage}"

    def queries(self, queries: Sequence[str]) -> torch.Tensor:
        """Return (queries, dim) float32, on the CPU; a query is read up to the encoder's window."""
        with self._lock:
            ids = self._tokenizer([self.usage.query_prefix + query for query in queries], verbose=False)["input_ids"]
        self._warn_of_length(map(len, ids), self.window)
        return torch.stack(self._vectors(queries))

    def _vectors(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Return the vectors of texts as queries."""
        found: list[torch.Tensor] = []
        for first in range(0, len(texts), _QUERIES_TOGETHER):
            prefixed = [self.usage.query_prefix + text for text in texts[first : first + _QUERIES_TOGETHER]]
            with self._lock, torch.no_grad():
                found += self._pooled(self._read(prefixed))
        return found

    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        return self._read([self.usage.passage_prefix + text for text in texts])

    def _read(self, texts: list[str]) -> dict[str, torch.Tensor]:
        cut = {"truncation": True, "max_length": self.window, "padding": True}
        return dict(
            self._tokenizer(texts, **cut, return_token_type_ids=False, return_attention_mask=True, return_tensors="pt")
        )

    def _embedded(self, tokens: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        return list(self._pooled(tokens).split(1))

    def _pooled(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return (texts, dim) float32, on the CPU."""
        given = {name: of_all.to(self._model.device) for name, of_all in tokens.items()}
        states, read = self._model(**given).last_hidden_state.float(), given["attention_mask"].unsqueeze(-1)
        vectors = states[:, 0] if self.usage.pooling == "cls" else (states * read).sum(1) / read.sum(1)
        return (torch.nn.functional.normalize(vectors, dim=1) if self.usage.normalised else vectors).cpu()
