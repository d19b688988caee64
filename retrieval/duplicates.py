"""Checks whether a query was asked before: each gives the index of the seen query that it repeats, or None."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import regex

from ..common.errors import QuestreeError
from .contracts import Retriever, Similarity

if TYPE_CHECKING:
    from .cross_encoder import PairModel

DEFAULT_MODEL = "cross-encoder/quora-distilroberta-base"
DEFAULT_PROBABILITY = 0.5
_LONGEST = 256  # tokens of two questions
DEFAULT_COSINE = 0.92
"""By the embedded encoder, eight hand-made pairs that ask the same had .877 to .976, eight near misses .618 to .871.
It is strict: a repeat that is missed costs a search; a wrong one leaves an answer unverified."""

_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_NOT_WORDS = regex.compile(
    r"(?:(?!(?<=\p{N})\S(?=\p{N})"  # 3.10, 1/2, 9:11
    r"|(?<![\w.-])-(?=\.?\p{N})|(?<![\w.])\.(?=[\p{L}\p{N}]))"  # -5, .5, .NET
    r"[^\p{L}\p{M}\p{N}\p{Sm}\p{Sc}\p{So}#%*^])+"
)
"""Signs that name something are words too: they tell C++ from C#, $5 from €5, B♭ from B, and -5 from 5."""


class ExactDuplicates:
    """The check by words: equal but for case, punctuation and space."""

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """Return the index of the first seen query that this one repeats."""
        wanted = _words(query)
        return next((index for index, other in enumerate(seen) if _words(other) == wanted), None)


class RetrieverDuplicates:
    """The check by the embeddings of a retriever's own encoder. Made by ``of``.

    Args:
        name: for people.
        threshold: the cosine from which two queries count as the same.
        similarity: compares texts.
        remote: whether a server does that.
    """

    def __init__(self, name: str, threshold: float, similarity: Similarity, *, remote: bool = False) -> None:
        self.name, self.remote = name, remote
        self.threshold = threshold
        self._similarity = similarity

    @classmethod
    def of(cls, retriever: Retriever, *, threshold: float | None = None) -> RetrieverDuplicates:
        """Return the check by a retriever that has ``similarity``: a neural index has, BM25 has not.

        Args:
            retriever: the program's own.
            threshold: by default a strict one: who directed one film and who directed another are near neighbours.

        Raises:
            QuestreeError: if the retriever has none.
        """
        similarity = retriever.similarity
        if similarity is None:
            raise QuestreeError(
                f"The retriever {retriever.name} has no embeddings to compare queries by. Use --duplicates exact or a "
                "cross-encoder, or an index of late interaction (questree index --kind exact)."
            )
        cosine = DEFAULT_COSINE if threshold is None else threshold
        return cls(f"retriever {retriever.name}", cosine, similarity, remote=retriever.remote)

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """Return the index of the seen query most like this one, if it is like enough."""
        return _best(self.likeness(query, seen), self.threshold)

    def likeness(self, query: str, seen: Sequence[str]) -> list[float]:
        """Return the cosine with each seen query."""
        return list(self._similarity([query], list(seen))[0]) if seen else []


class CrossEncoderDuplicates:
    """A cross-encoder trained on duplicate questions, as SearChain's authors use. Made by ``load``; thread-safe."""

    def __init__(self, name: str, threshold: float, model: PairModel, fingerprint: str = "") -> None:
        self.name, self.fingerprint = name, fingerprint
        self.threshold = threshold
        self._model = model

    @classmethod
    def load(cls, model: str | Path = DEFAULT_MODEL, *, threshold: float | None = None) -> CrossEncoderDuplicates:
        """Load a cross-encoder by hub name or folder.

        Args:
            model: a sequence classifier; of two classes or more the last one means duplicate.
            threshold: the probability from which two queries count as the same; by default .5, as the authors have it.

        Raises:
            CheckpointError: if it cannot be found, fetched or loaded.
        """
        from .cross_encoder import PairModel
        from .encoders import folder_hash

        loaded = PairModel(model, _LONGEST)
        probability = DEFAULT_PROBABILITY if threshold is None else threshold
        return cls(str(model), probability, loaded, folder_hash(model, loaded.model))

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """Return the index of the seen query that is most likely the same, if it is likely enough."""
        return _best(self.likeness(query, seen), self.threshold)

    def likeness(self, query: str, seen: Sequence[str]) -> list[float]:
        """Return how likely each seen query is the same question as this one."""
        if not seen:
            return []
        logits = self._model.logits(query, seen)
        of_duplicate = logits.sigmoid()[:, 0] if logits.shape[1] == 1 else logits.softmax(-1)[:, -1]
        return [float(probability) for probability in of_duplicate]


def _best(likeness: Sequence[float], threshold: float) -> int | None:
    place = max(range(len(likeness)), key=likeness.__getitem__, default=None)
    return place if place is not None and likeness[place] >= threshold else None


@lru_cache(maxsize=512)  # each query of a chain is compared with all before it
def _words(text: str) -> str:
    plain: str = _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold().translate(_DASHES))
    return plain.strip()
