"""A retriever whose best passages a model puts into a new order: a cross-encoder, or ColBERT's late interaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.errors import CheckpointError
from .base import Kept, WrappingRetriever, batched, check_search
from .contracts import Retriever
from .cross_encoder import PairModel
from .encoders import weights_hash
from .late_interaction.checkpoint import late_checkpoint
from .late_interaction.encoder import Encoder
from .late_interaction.rerank import maxsim
from .passage import Passage

if TYPE_CHECKING:
    import torch

CANDIDATES = 50
LATE = "colbert:"
_AT_ONCE = 32  # pairs


class RerankedRetriever(WrappingRetriever):
    """Another retriever's best passages, in the order of a scorer. Made by ``load``; thread-safe.

    Args:
        retriever: finds the candidates.
        scorer: scores each text of them, whatever the others are.
        candidates: passages that are scored for each query; as many as are asked for, if those are more.
    """

    def __init__(self, retriever: Retriever, scorer: CrossEncoder | LateInteraction, candidates: int = CANDIDATES):
        rule = f"reranked 1 {candidates} {scorer.fingerprint} {retriever.fingerprint}"
        fingerprint = hashlib.sha256(rule.encode()).hexdigest()[:16]
        super().__init__([retriever], f"{retriever.name} reranked by {scorer.name}", fingerprint)
        self.candidates, self._scorer = candidates, scorer

    @classmethod
    def load(cls, retriever: Retriever, model: str | Path, *, candidates: int = CANDIDATES) -> RerankedRetriever:
        """Load a model by hub name or folder, and put it in front of a retriever.

        Args:
            retriever: finds the candidates.
            model: a cross-encoder, such as ``cross-encoder/ms-marco-MiniLM-L6-v2``; or ``colbert:`` and a checkpoint
                of ColBERT's, such as ``colbert:colbert-ir/colbertv2.0``.
            candidates: passages that are scored for each query.

        Raises:
            CheckpointError: if it cannot be found, fetched or loaded, or gives more than one logit.
        """
        late = str(model).startswith(LATE)
        scorer = LateInteraction(str(model)[len(LATE) :]) if late else CrossEncoder(model)
        return cls(retriever, scorer, candidates)

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first; of equal ones the retriever's better one first.

        Raises:
            QueryError: if a query is empty, or k is not positive.
        """
        checked = check_search(queries, k)
        found = self.members[0].batch(checked, max(k, self.candidates))
        return [self._ranked(query, passages)[:k] for query, passages in zip(checked, found, strict=True)]

    def _ranked(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages in their new order."""
        scores = self._scorer.scores(query, [one.shown() for one in passages]) if passages else []
        scored = [one.model_copy(update={"score": score}) for one, score in zip(passages, scores, strict=True)]
        return sorted(scored, key=lambda passage: -passage.score)


class CrossEncoder:
    """Reads query and text together; the score is its logit (Nogueira and Cho, 2019, arXiv 1901.04085)."""

    def __init__(self, model: str | Path) -> None:
        self._model = PairModel(model)
        if (logits := self._model.model.config.num_labels) != 1:
            raise CheckpointError(f"{model} gives {logits} logits for a pair; a reranker gives one. Name another.")
        self.name, self.fingerprint = Path(model).name, weights_hash(self._model.model)

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the logit of each text; each query is read by itself, so that a batch changes no score.

        Equal texts are read once: two rows of a batch may differ in the last digit.
        """
        read: dict[str, float] = {}
        for some in batched(dict.fromkeys(texts), _AT_ONCE):
            read.update(zip(some, self._model.logits(query, some)[:, 0].tolist(), strict=True))
        return [read[text] for text in texts]


class LateInteraction:
    """Scores texts by ColBERT's MaxSim. Texts are encoded when they are first scored, and kept for a while."""

    def __init__(self, name: str) -> None:
        checkpoint = late_checkpoint(name)
        self._encoder = Encoder.load(checkpoint)
        self.name = f"{LATE}{checkpoint.name}"
        self.fingerprint = f"late {checkpoint.fingerprint} {self._encoder.precision}"
        self._known: Kept[str, torch.Tensor] = Kept()

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the MaxSim of the query with each text."""
        import torch

        known = self._known.all_of(texts, self._encoder.passages, lambda text, rows: len(text) + rows.nbytes)
        rows = torch.cat(known).float()
        scores: list[float] = maxsim(self._encoder.queries([query])[0], rows, list(map(len, known))).tolist()
        return scores
