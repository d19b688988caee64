"""The retriever over a collection of Qdrant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...common.errors import IndexRefused
from ..base import Kept, batched, check_search, filled, reopened
from ..bm25 import BM25Settings
from ..checkpoints import checkpoint_of
from ..contracts import Retriever
from ..late_interaction.checkpoint import late_checkpoint
from ..late_interaction.encoder import Encoder
from ..passage import Passage
from ..serving.remote_requests import QUERIES_TOGETHER, RemoteSettings
from .collection import Collection
from .layout import TOKENS, WORDS, QdrantSettings, passage_from_point, rescoring
from .words import Words, query_words

if TYPE_CHECKING:
    import torch
    from qdrant_client import models

_HIT_BYTES = 300


class QdrantRetriever(Retriever):
    """BM25 gathers in the collection, and MaxSim over token embeddings puts in order, in one request (``prefetch``).

    Safe in several threads. As `GatherAndRerank`, it does not find a passage without any word of
    the query. After every answer it looks whether the collection still is the index of first contact: a process that
    changes a collection says so before it begins.

    Args:
        address: of a collection; it is asked at once what it holds.
    """

    name = "qdrant"

    def __init__(self, address: str, settings: RemoteSettings | None = None) -> None:
        self._collection, state = Collection.held(address, settings)
        if not state.finished:
            raise IndexRefused(f"{address} is unfinished: run the command that began it again.")
        manifest = state.manifest
        self.fingerprint, self._passages = manifest.fingerprint, manifest.corpus.passages
        self.remote = self._collection.address.folder is None
        self.settings = QdrantSettings(**manifest.settings["qdrant"])
        self._words = BM25Settings(**BM25Settings.OLDER | manifest.settings["bm25"])
        self.encoder = Encoder.load(checkpoint_of(address, manifest.checkpoint, late_checkpoint))
        self.similarity = self.encoder.similarity
        self._known: Kept[tuple[str, int], list[Passage]] = Kept()
        self.place = partial(reopened, QdrantRetriever, str(self._collection.address), self.fingerprint)

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, as single calls would."""
        return filled(self._found, check_search(queries, k), k, self._passages)

    def _found(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        return self._known.all_of(
            [(query, k) for query in queries],
            lambda keys: self._search([query for query, _ in keys], k),
            lambda key, found: len(key[0]) + sum(_HIT_BYTES + len(one.title) + len(one.text) for one in found),
        )

    def _search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        words, found = query_words(queries, self._words), list[list[Passage]]([] for _ in queries)
        asked = [number for number, (numbers, _) in enumerate(words) if numbers]  # the others find nothing
        for some in batched(asked, QUERIES_TOGETHER):
            embedded = self.encoder.queries([queries[number] for number in some])
            requests = [self._request(rows, words[number], k) for number, rows in zip(some, embedded, strict=True)]
            for number, points in zip(some, self._collection.query(requests), strict=True):
                ordered = sorted(points, key=lambda point: (-point.score, point.id))  # of equal ones the earlier first
                found[number] = [passage_from_point(point) for point in ordered]
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
