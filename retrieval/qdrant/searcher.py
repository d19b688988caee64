"""The retriever over a collection of Qdrant."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.errors import IndexRefused
from ..base import BaseRetriever, check_search, reopened
from ..bm25 import BM25Settings
from ..checkpoints import checkpoint_of
from ..contracts import Similarity
from ..indexes.contents import IndexManifest
from ..kept_results import Kept
from ..late_interaction.checkpoint import find_checkpoint
from ..late_interaction.encoder import Encoder
from ..passage import Passage
from ..serving.remote_requests import RemoteSettings
from .collection import Collection
from .layout import TOKENS, WORDS, QdrantSettings, passage_of, rescoring
from .words import Words, query_words

if TYPE_CHECKING:
    import torch
    from qdrant_client import models

_HIT_BYTES = 300


class QdrantRetriever(BaseRetriever):
    """BM25 gathers in the collection, and MaxSim over token embeddings puts in order, in one request (``prefetch``).

    Made by ``connect``; safe in several threads. As `GatherAndRerank`, it does not find a passage without any word of
    the query. After every answer it looks whether the collection still is the index of first contact: a process that
    changes a collection says so before it begins.
    """

    name = "qdrant"

    def __init__(self, collection: Collection, manifest: IndexManifest, encoder: Encoder) -> None:
        self.fingerprint, self.encoder = manifest.fingerprint, encoder
        self.remote = collection.address.folder is None
        self.settings = QdrantSettings(**manifest.settings["qdrant"])
        self._words = BM25Settings(**manifest.settings["bm25"])
        self._collection, self._passages = collection, manifest.corpus.passages
        self._known: Kept[tuple[str, int], list[Passage]] = Kept()
        self.place = partial(reopened, QdrantRetriever.connect, str(collection.address), self.fingerprint)

    @classmethod
    def connect(
        cls,
        address: str,
        *,
        checkpoint: str | Path | None = None,
        settings: RemoteSettings | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> QdrantRetriever:
        """Return the retriever over the collection at an address.

        Args:
            checkpoint: where the encoder is now, if it moved; it must be the same.
            wait: called with the seconds of each pause.
        """
        collection, state = Collection.held(address, settings, wait)
        if not state.finished:
            raise IndexRefused(f"{address} is unfinished: run the command that began it again.")
        found = checkpoint_of(address, state.manifest, find_checkpoint, checkpoint)
        try:
            return cls(collection, state.manifest, Encoder.load(found))
        except (KeyError, TypeError, ValueError) as problem:
            raise IndexRefused(f"{address} is foreign: its settings are not known here ({problem}).") from problem

    @property
    def similarity(self) -> Similarity:
        """Return the encoder's comparison of texts."""
        return self.encoder.similarity

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, as single calls would."""
        most = min(k, self._passages)
        kept = self._known.all_of(
            [(query, most) for query in check_search(queries, k)],
            lambda keys: self._search([query for query, _ in keys], most),
            lambda key, found: len(key[0]) + sum(_HIT_BYTES + len(one.title) + len(one.text) for one in found),
        )
        return [list(found) for found in kept]  # lists of the caller's own

    def _search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        words, found = query_words(queries, self._words), list[list[Passage]]([] for _ in queries)
        asked = [number for number, (numbers, _) in enumerate(words) if numbers]  # the others find nothing
        together = self._collection.settings.queries_together
        for first in range(0, len(asked), together):
            some = asked[first : first + together]
            embedded = self.encoder.queries([queries[number] for number in some])
            requests = [self._request(rows, words[number], k) for number, rows in zip(some, embedded, strict=True)]
            for number, points in zip(some, self._collection.query(requests), strict=True):
                ordered = sorted(points, key=lambda point: (-point.score, point.id))  # of equal ones the earlier first
                found[number] = [passage_of(point, self._collection.address) for point in ordered]
        if asked:
            self._check_unchanged()
        return found

    def _request(self, rows: torch.Tensor, words: Words, k: int) -> models.QueryRequest:
        from qdrant_client import models

        sparse = models.SparseVector(indices=words[0], values=words[1])
        return models.QueryRequest(
            prefetch=models.Prefetch(query=sparse, using=WORDS, limit=max(k, self.settings.candidates)),
            query=rows.tolist(),
            using=TOKENS,
            params=rescoring(self.settings) if self.remote else None,  # local mode compares whole ones
            limit=k,
            with_payload=True,
        )

    def _check_unchanged(self) -> None:
        state, there = self._collection.state(), "is gone"
        if state is not None:
            if state.finished and state.manifest.fingerprint == self.fingerprint:
                return
            there = f"{'holds' if state.finished else 'is being written, as'} the index {state.manifest.fingerprint}"
        raise IndexRefused(
            f"{self._collection.address} {there}, and held {self.fingerprint} when this run began: their passages "
            "must not be mixed. Start the run anew when it is finished, or search the old index under another name."
        )
