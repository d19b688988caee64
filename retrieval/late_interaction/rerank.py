"""Gather and rerank: BM25 finds candidates, and late interaction over their stored embeddings puts them into order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...common.errors import IndexRefused, QuestreeError
from ..base import Hits, IndexRetriever, NeuralRetriever, best
from ..bm25 import BM25
from ..indexes.chunks import bounds, chunk_count, chunk_of, read_record, rows_file
from ..indexes.contents import IndexManifest, PassageStore
from ..indexes.index_kind import IndexKind, Order, Written
from .embeddings import encode, encoder_of, order_again
from .encoder import Encoder
from .packed_rows import Packing

FOLDER, PLACES = "packed", "packed.places.npy"
_TOGETHER = 256
"""Candidates whose embeddings are in memory at once: 14 MB of 128 dimensions."""


@dataclass(frozen=True)
class RerankSettings:
    """How many passages are gathered, and how their embeddings are stored.

    Attributes:
        candidates: passages that BM25 gathers for a query; as many as are asked for, if those are more.
        nbits: the bits for each dimension of an embedding: 1, 2, 4 or 8.

    Raises:
        QuestreeError: if either is another.
    """

    candidates: int = 100
    nbits: int = 4

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise QuestreeError(f"{self.candidates} candidates cannot be reranked; gather one at least (candidates).")
        if self.nbits not in (1, 2, 4, 8):
            raise QuestreeError(f"Embeddings are stored with 1, 2, 4 or 8 bits a dimension (nbits), not {self.nbits}.")


class PackedEmbeddings:
    """The packed embeddings of a corpus on disk; those of a passage are read when they are asked for."""

    def __init__(self, folder: Path, packing: Packing, passages: int) -> None:
        self._folder, self._packing = folder, packing
        try:
            self._places = np.load(folder / PLACES, mmap_mode="r", allow_pickle=False)
            files = [rows_file(folder / FOLDER, number, "u1") for number in range(chunk_count(passages))]
            self._rows = [np.memmap(file, np.uint8, "r").reshape(-1, packing.bytes) for file in files]
        except (OSError, ValueError) as problem:
            raise IndexRefused(f"{folder} is damaged: its embeddings cannot be read ({problem}).") from problem
        if self._places.shape != (passages, 2):
            raise IndexRefused(f"{folder} is damaged: {PLACES} is not of its {passages} passages.")

    @staticmethod
    def write_places(folder: Path, passages: int) -> None:
        """Write where each passage's rows are: (passages, 2), the first row in the file of its chunk, and the end."""
        places = np.empty((passages, 2), dtype=np.int32)
        for number in range(chunk_count(passages)):
            ends = np.cumsum(read_record(folder / FOLDER, number).lengths)
            first, last = bounds(number, passages)
            places[first:last] = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)
        np.save(folder / PLACES, places, allow_pickle=False)

    def of(self, positions: Sequence[int]) -> tuple[torch.Tensor, list[int]]:
        """Return the (rows, dim) float32 of some passages, one's after the other's, and how many rows each has."""
        packed = [self._packed(position) for position in positions]
        return self._packing.unpacked(np.concatenate(packed)), [len(rows) for rows in packed]

    def _packed(self, position: int) -> np.ndarray[Any, Any]:
        first, end = self._places[position]
        rows = self._rows[chunk_of(position)][first:end]
        if not len(rows) or len(rows) != end - first:
            raise IndexRefused(f"{self._folder} is damaged: the embeddings of passage {position} are not there.")
        return rows


class GatherAndRerank(NeuralRetriever):
    """Another index's best passages in the order of ColBERT's MaxSim (Khattab and Zaharia, SIGIR 2020, section 3.6).

    A search reads and scores as many passages as are gathered, however large the corpus. What the first index does not
    find, such as a passage without any word of the query, is not found here either.

    Args:
        candidates: passages that are gathered for each query; as many as are asked for, if those are more.
    """

    name = "rerank"

    def __init__(
        self,
        gatherer: IndexRetriever,
        encoder: Encoder,
        embeddings: PackedEmbeddings,
        *,
        fingerprint: str,
        candidates: int,
    ) -> None:
        super().__init__(gatherer.passages, fingerprint, encoder)
        self.candidates = candidates
        self._gatherer, self._embeddings = gatherer, embeddings

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        count = min(max(k, self.candidates), len(self.passages))
        gathered = self._gatherer._search(queries, count)
        embedded = self.encoder.queries(queries)
        return [self._ranked(query, hits, k) for query, hits in zip(embedded, gathered, strict=True)]

    def _ranked(self, query: torch.Tensor, gathered: Hits, k: int) -> Hits:
        """Return the k best candidates by their scores; of equal ones the earlier passage first."""
        positions = sorted(position for position, _ in gathered)
        if not positions:
            return []
        parts = (positions[first : first + _TOGETHER] for first in range(0, len(positions), _TOGETHER))
        scores = np.concatenate([maxsim(query, *self._embeddings.of(part)) for part in parts])
        return [(positions[place], score) for place, score in best(scores, k)]


def maxsim(query: torch.Tensor, rows: torch.Tensor, lengths: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return (passages,): for each token of the query its best match in the passage, summed.

    Args:
        query: (tokens, dim).
        rows: (rows, dim), one passage's after the other's.
        lengths: (passages,) the number of rows of each, one at least.
    """
    starts = np.cumsum([0, *lengths[:-1]])
    scores: np.ndarray[Any, Any] = np.maximum.reduceat((rows @ query.T).numpy(), starts, axis=0).sum(1)
    return scores


def _write(order: Order) -> Written:
    settings: RerankSettings = order.settings or RerankSettings()
    _, written = encode(order, FOLDER, nbits=settings.nbits)
    PackedEmbeddings.write_places(order.folder, len(order.passages))
    gathering = BM25.write(replace(order, settings=None))
    return replace(written, settings={**written.settings, "rerank": asdict(settings), "bm25": gathering.settings})


def _load(
    folder: Path, manifest: IndexManifest, passages: PassageStore, checkpoint: str | Path | None
) -> GatherAndRerank:
    settings = RerankSettings(**manifest.settings["rerank"])
    gatherer = BM25.load(folder, manifest.model_copy(update={"settings": manifest.settings["bm25"]}), passages, None)
    packing = Packing(int(manifest.settings["dim"]), settings.nbits)
    return GatherAndRerank(
        gatherer,
        encoder_of(folder, manifest, checkpoint),
        PackedEmbeddings(folder, packing, len(passages)),
        fingerprint=manifest.fingerprint,
        candidates=settings.candidates,
    )


RERANK = IndexKind(
    "rerank",
    "BM25 gathers, late interaction over stored embeddings reranks: for corpora of any size",
    _write,
    _load,
    settings=RerankSettings,
    work=FOLDER,
    again=lambda manifest: order_again(manifest) | {"settings": RerankSettings(**manifest.settings["rerank"])},
)
