"""Exact late interaction: every passage is scored, over stored token embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..base import Hits, NeuralRetriever, batched, best
from ..contracts import Passages
from ..indexes.contents import IndexManifest, PassageStore
from ..indexes.index_kind import IndexKind
from .checkpoint import late_checkpoint
from .embeddings import FOLDER, Chunk, Embeddings, encode, encoder_of
from .encoder import Encoder

_QUERIES_TOGETHER = 32
_ROWS_TOGETHER = 4096
_FEW_TOKENS = 32
_CHUNKS_TOGETHER = 64
"""Of a block that is held; their files are open meanwhile."""
_HELD_BYTES = 2 << 30
"""Up to here the embeddings are held as float32; above, they are converted chunk by chunk in each search."""


class ExactRetriever(NeuralRetriever):
    """ColBERT's MaxSim (Khattab and Zaharia, SIGIR 2020, equation 3) with every passage: no candidate is missed.

    Linear in the corpus: a query's tokens are multiplied with all embeddings, which takes 85% of a single query's time.
    6,000 passages of 115 tokens, one busy core: 122 ms for a query of 20 tokens, 56 ms for each of 32 together.
    """

    name = "colbert-exact"

    def __init__(self, passages: Passages, fingerprint: str, encoder: Encoder, embeddings: Embeddings) -> None:
        super().__init__(passages, fingerprint, encoder)
        self._embeddings = embeddings
        self._device, held = _place(len(embeddings) * embeddings.dim)
        self._held = list(self._blocks(_CHUNKS_TOGETHER)) if held else None

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        found: list[Hits] = []
        for some in batched(queries, _QUERIES_TOGETHER):
            found += [best(of_query, k) for of_query in self._scores(self.encoder.queries(some))]
        return found

    def _scores(self, queries: list[torch.Tensor]) -> np.ndarray[Any, Any]:
        """Return (queries, passages): for each token of a query its best match in the passage, summed."""
        query_starts = np.cumsum([0, *(len(query) for query in queries[:-1])])
        scores = np.empty((len(queries), len(self.passages)), dtype=np.float32)
        with torch.inference_mode():
            tokens = torch.cat(queries).to(self._device)
            for block in self._held or self._blocks(1):
                best_match = block.best_match(tokens.to(block.rows.dtype)).float().cpu().numpy()
                scores[:, block.passages] = np.add.reduceat(best_match, query_starts, axis=0)
        return scores

    def _blocks(self, together: int) -> Iterator[Block]:
        """Yield the embeddings in blocks of so many chunks."""
        return (Block.of(some, self._device) for some in batched(self._embeddings.chunks(), together))


@dataclass(frozen=True)
class Block:
    """Embeddings of some passages; those of one length lie together, so the best match is a maximum over a view.

    Attributes:
        rows: (rows, dim); float32 on the CPU, float16 on a GPU.
        passages: (passages,) their positions in the corpus, in the order of the rows.
        lengths: (passages,) the number of rows of each, ascending.
        runs: first row, number of passages and their length, for runs of passages of one length, about
            ``_ROWS_TOGETHER`` rows each.
    """

    rows: torch.Tensor
    passages: np.ndarray[Any, Any]
    lengths: torch.Tensor
    runs: list[tuple[int, int, int]]

    @classmethod
    def of(cls, chunks: Sequence[Chunk], device: str = "cpu") -> Block:
        """Return a block of the passages of successive chunks; this takes the memory of a few chunks more."""
        lengths, first = np.concatenate([of_chunk for _, of_chunk, _ in chunks]), chunks[0][0]
        order = np.argsort(lengths, kind="stable")
        starts = np.empty_like(lengths)
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        kind = torch.float32 if device == "cpu" else torch.float16
        rows = torch.empty(int(lengths.sum()), chunks[0][2].shape[1], dtype=kind, device=device)
        for position, of_chunk, matrix in chunks:
            moved_to = starts[position - first : position - first + len(of_chunk)]
            within = np.arange(len(matrix)) - np.repeat(np.cumsum(of_chunk) - of_chunk, of_chunk)
            places = torch.from_numpy(np.repeat(moved_to, of_chunk) + within)
            rows[places.to(device)] = torch.from_numpy(np.array(matrix)).to(device, kind)
        ordered = lengths[order]
        return cls(rows, order + first, torch.from_numpy(ordered).to(device), list(_runs(ordered)))

    def best_match(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return (tokens, passages): for each token the highest product with a row of the passage.

        Args:
            tokens: (tokens, dim).
        """
        return self.by_segments(tokens) if self.rows.is_cuda else self.by_runs(tokens)

    def by_segments(self, tokens: torch.Tensor) -> torch.Tensor:
        """Compute the best match in few large steps, which suits a GPU."""
        return torch.segment_reduce((self.rows @ tokens.T).float(), "max", lengths=self.lengths, axis=0).T

    def by_runs(self, tokens: torch.Tensor) -> torch.Tensor:
        """Compute the best match in steps whose products stay in a CPU's cache."""
        parts = []
        for start, count, length in self.runs:
            rows = self.rows[start : start + count * length]
            if len(tokens) >= _FEW_TOKENS:  # then the maximum runs over whole cache lines of tokens
                parts.append((rows @ tokens.T).view(count, length, -1).amax(1).T)
            else:
                parts.append((tokens @ rows.T).view(-1, count, length).amax(2))
        return torch.cat(parts, dim=1)


def _runs(lengths: np.ndarray[Any, Any]) -> Iterator[tuple[int, int, int]]:
    """Yield runs in ascending lengths, none much above ``_ROWS_TOGETHER`` rows, so that products stay in the cache."""
    start = 0
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        most = max(1, _ROWS_TOGETHER // int(length))
        for done in range(0, int(count), most):
            some = min(most, int(count) - done)
            yield start, some, int(length)
            start += some * int(length)


def _place(numbers: int) -> tuple[str, bool]:
    """Return the device on which so many numbers are searched, and whether they fit into its memory."""
    if torch.cuda.is_available():
        free, _ = torch.cuda.mem_get_info()
        return "cuda", numbers * 2 < free // 2
    return "cpu", numbers * 4 <= _HELD_BYTES


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore) -> ExactRetriever:
    embeddings = Embeddings(folder / FOLDER, len(passages))
    return ExactRetriever(passages, manifest.fingerprint, encoder_of(folder, manifest), embeddings)


EXACT = IndexKind(
    "exact",
    "late interaction with every passage: the best there is, for small corpora",
    encode,
    _load,
    work=FOLDER,
    find=late_checkpoint,
)
