"""A retriever whose best passages a cross-encoder puts into a new order."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..common.errors import CheckpointError
from .base import WrappingRetriever, check_search
from .contracts import Retriever
from .encoders import load_model
from .passage import Passage

CANDIDATES = 50
_AT_ONCE = 32  # pairs
_LONGEST = 512  # tokens of a pair


class RerankedRetriever(WrappingRetriever):
    """Another retriever's best passages, in the order of a cross-encoder, which reads query and passage together.

    The score of a passage is the logit that the cross-encoder gives it (Nogueira and Cho, 2019, arXiv 1901.04085).
    Made by ``load``; thread-safe.

    Args:
        retriever: finds the candidates.
        name: of the cross-encoder.
        model: of transformers, with one logit.
        tokenizer: the model's.
        candidates: passages that are read for each query; as many as are asked for, if those are more.
    """

    def __init__(self, retriever: Retriever, name: str, model: Any, tokenizer: Any, candidates: int = CANDIDATES):
        rule = f"reranked 1 {candidates} {_weights_hash(model)} {retriever.fingerprint}"
        fingerprint = hashlib.sha256(rule.encode()).hexdigest()[:16]
        super().__init__([retriever], f"{retriever.name} reranked by {name}", fingerprint)
        self.candidates = candidates
        self._model, self._tokenizer, self._lock = model, tokenizer, threading.Lock()
        self._room = getattr(model.config, "max_position_embeddings", _LONGEST)

    @classmethod
    def load(
        cls, retriever: Retriever, model: str | Path, *, candidates: int = CANDIDATES, device: str | None = None
    ) -> RerankedRetriever:
        """Load a cross-encoder by hub name or folder, and put it in front of a retriever.

        Args:
            retriever: finds the candidates.
            model: a sequence classifier with one logit, such as ``cross-encoder/ms-marco-MiniLM-L6-v2``.
            candidates: passages that are read for each query.
            device: by default the GPU if there is one.

        Raises:
            CheckpointError: if it cannot be found, fetched or loaded, or gives more than one logit.
        """
        loaded, tokenizer, _ = load_model("AutoModelForSequenceClassification", model, device=device)
        if (logits := loaded.config.num_labels) != 1:
            raise CheckpointError(f"{model} gives {logits} logits for a pair; a reranker gives one. Name another.")
        return cls(retriever, Path(model).name, loaded, tokenizer, candidates)

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first; of equal ones the retriever's better one first.

        Raises:
            QueryError: if a query is empty, or k is not positive.
        """
        checked = check_search(queries, k)
        found = self.members[0].batch(checked, max(k, self.candidates))
        return [self._ranked(query, passages)[:k] for query, passages in zip(checked, found, strict=True)]

    def _ranked(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages in their new order; each query is read by itself, so that a batch changes no score."""
        scores = [
            score
            for first in range(0, len(passages), _AT_ONCE)
            for score in self._logits(query, [one.shown() for one in passages[first : first + _AT_ONCE]])
        ]
        scored = [one.model_copy(update={"score": score}) for one, score in zip(passages, scores, strict=True)]
        return sorted(scored, key=lambda passage: -passage.score)

    def _logits(self, query: str, texts: list[str]) -> list[float]:
        import torch

        with self._lock, torch.inference_mode():
            encoded = self._tokenizer(
                [query] * len(texts),
                texts,
                padding=True,
                truncation="longest_first",
                max_length=min(_LONGEST, self._tokenizer.model_max_length, self._room),
                return_tensors="pt",
            )
            logits = self._model(**encoded.to(self._model.device)).logits.float()
        return [float(logit) for logit in logits[:, 0]]


def _weights_hash(model: Any) -> str:
    import torch

    digest = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
