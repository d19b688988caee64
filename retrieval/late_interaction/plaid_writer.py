"""The writer of PLAID indexes from stored embeddings, through colbert-ai, in memory that the corpus does not fill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from ..indexes.index_kind import BuildProgress, Report
from .compat import colbert_ready
from .embeddings import Embeddings
from .encoder import Encoder
from .plaid_codec import PlaidSettings, codec_class, make_codec

_HELD_OUT = 0.05
"""The share of the sample that colbert-ai keeps from k-means."""
_SAMPLED_ROWS = 1 << 24
"""Embeddings, at most, on which the centroids are trained (13 GB at 128 dimensions, for some minutes). colbert-ai's
sample, 16 * sqrt(120 * passages) passages, is larger above 600,000 passages or so: 50 GB for Wikipedia's 21 million."""


def write_plaid(
    folder: Path, embeddings: Embeddings, encoder: Encoder, settings: PlaidSettings, report: Report = lambda _: None
) -> None:
    """Compress stored embeddings into an index, in this process and on one device.

    It needs memory for the sample of embeddings, then for 25,000 passages at a time, then for the lists of passages by
    centroid, which a search holds too.

    Raises:
        QuestreeError: if there are too few embeddings to train the centroids on, or their dimensions do not pack into
            bytes.
    """
    _check_size(embeddings)
    if encoder.dim % 8:
        raise QuestreeError(
            f"PLAID cannot pack {encoder.dim} dimensions into bytes: a multiple of 8 is needed. "
            "Choose exact search: --kind exact."
        )
    folder.mkdir()
    with colbert_ready():
        import random

        import numpy as np
        import torch
        from colbert.infra import ColBERTConfig, Run

        random.seed(12345)
        np.random.seed(12345)
        torch.manual_seed(12345)
        config = ColBERTConfig(
            nranks=1,
            avoid_fork_if_possible=True,
            checkpoint=str(encoder.checkpoint.folder),
            index_path=str(folder),
            index_name=folder.name,
            dim=encoder.dim,
            nbits=settings.nbits,
            kmeans_niters=settings.kmeans_iterations,
        )
        with Run().context(config, inherit_config=False):
            _indexer(config, embeddings, report).run([])
    for name in ("plan.json", "metadata.json"):
        _without_places(folder / name)


def _check_size(embeddings: Embeddings) -> None:
    rows = len(embeddings)
    centroids = 2 ** int(16 * rows**0.5).bit_length() // 2
    if centroids > int(rows * (1 - _HELD_OUT)):
        raise QuestreeError(
            f"{len(embeddings.lengths)} passages ({rows} token embeddings) are too few for PLAID, which would train "
            f"{centroids} centroids on them. Use exact search, which is better and faster there: --kind exact."
        )


def _without_places(file: Path) -> None:
    """Remove paths from a file, so that the index is the same wherever it was built."""
    content = json.loads(file.read_bytes())
    for name in ("index_path", "checkpoint", "root", "index_root"):
        if name in content["config"]:
            content["config"][name] = None
    content["config"].pop("meta", None)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


class _StoredEncoder:
    """What the indexer asks of an encoder; here it reads what is stored."""

    def __init__(self, embeddings: Embeddings, report: Report):
        self._embeddings, self._report = embeddings, report

    def encode_passages(self, positions: Sequence[int]) -> tuple[Any, list[int]]:
        """Return the embeddings of passages, and how many each has."""
        import numpy as np
        import torch

        stored = self._embeddings
        self._report(BuildProgress("compressing", positions[0], len(stored.lengths)))
        rows = torch.from_numpy(np.concatenate([stored.of(position) for position in positions]))
        return rows if torch.cuda.is_available() else rows.float(), stored.lengths[list(positions)].tolist()


class _Positions:
    """What the indexer asks of a collection."""

    def __init__(self, count: int):
        self._count = count

    def __len__(self) -> int:
        return self._count

    def get_chunksize(self) -> int:
        """Return how many passages are compressed at a time."""
        return min(25_000, 1 + self._count)

    def enumerate_batches(self, rank: int) -> Iterator[tuple[int, int, range]]:
        """Yield for each chunk its number, its first position, and its positions."""
        size = self.get_chunksize()
        for number, first in enumerate(range(0, self._count, size)):
            yield number, first, range(first, min(first + size, self._count))


def _indexer(config: Any, embeddings: Embeddings, report: Report) -> Any:
    """Return colbert-ai's indexer over stored embeddings; its collection is the positions of the passages.

    Unchanged, it encodes a small corpus twice, once for the centroids and once for the index, and sorts the codes of
    the whole corpus in memory.
    """
    import faiss
    import numpy as np
    import torch
    from colbert.indexing.collection_indexer import CollectionIndexer
    from colbert.indexing.index_saver import IndexSaver

    class Saver(IndexSaver):
        def load_codec(self) -> Any:
            return codec_class().load(index_path=config.index_path_)

    class Indexer(CollectionIndexer):
        def __init__(self) -> None:
            self.verbose = 0
            self.config, self.rank, self.nranks = config, 0, 1
            self.use_gpu = torch.cuda.is_available()
            self.collection = _Positions(len(embeddings.lengths))
            self.encoder, self.saver = _StoredEncoder(embeddings, report), Saver(config)

        def _sample_embeddings(self, sampled_pids: set[int]) -> float:
            report(BuildProgress("sampling embeddings", 0, 0))
            lengths = embeddings.lengths[sorted(sampled_pids)]
            sampled = np.random.permutation(sorted(sampled_pids))
            sampled = sampled[np.cumsum(embeddings.lengths[sampled]) <= max(_SAMPLED_ROWS, int(lengths.max()))]
            self.sampled = torch.from_numpy(np.concatenate([embeddings.of(position) for position in sampled]))
            self.avg_doclen_est = float(lengths.mean())
            return self.avg_doclen_est

        def train(self, shared_lists: list[Any]) -> None:
            sample, held_out = self._concatenate_and_split_sample()
            self.saver.save_codec(make_codec(config, self._train_kmeans(sample, shared_lists), held_out))

        def _concatenate_and_split_sample(self) -> tuple[Any, Any]:
            shuffled = self.sampled[torch.randperm(len(self.sampled))]
            del self.sampled
            held_out = int(min(_HELD_OUT * len(shuffled), 50_000))
            return shuffled[: len(shuffled) - held_out], shuffled[len(shuffled) - held_out :]

        def _train_kmeans(self, sample: Any, shared_lists: list[Any]) -> Any:
            """Train as colbert-ai does, without faiss's report on the screen."""
            report(BuildProgress(f"training {self.num_partitions:,} centroids on {len(sample):,} embeddings", 0, 0))
            kmeans = faiss.Kmeans(
                config.dim,
                self.num_partitions,
                niter=config.kmeans_niters,
                gpu=self.use_gpu,
                seed=123,
                min_points_per_centroid=1,
            )
            kmeans.train(sample.float().numpy())
            centroids = torch.nn.functional.normalize(torch.from_numpy(kmeans.centroids), dim=-1)
            return centroids.half() if self.use_gpu else centroids

        def _build_ivf(self) -> None:
            report(BuildProgress("listing passages by centroid", 0, 0))
            lists = passages_by_centroid(Path(config.index_path_), self.num_chunks, self.num_partitions)
            torch.save(lists, Path(config.index_path_) / "ivf.pid.pt")

    return Indexer()


def passages_by_centroid(folder: Path, chunks: int, centroids: int) -> tuple[Any, Any]:
    """Return the passages that have an embedding at each centroid, ascending, as colbert-ai's ``optimize_ivf`` does.

    This goes chunk by chunk: colbert-ai sorts the codes of all embeddings, 60 GB for Wikipedia's 21 million passages.

    Returns:
        (passages,) int32, one centroid's after the other's, and (centroids,) how many each has.
    """
    import numpy as np
    import torch

    counts = np.zeros(centroids, dtype=np.int64)
    for codes, _ in _pairs(folder, chunks):
        counts += np.bincount(codes, minlength=centroids)
    following = np.cumsum(counts) - counts
    last, most = int(following[-1]), int(counts.max())
    lists = np.zeros(max(int(counts.sum()), last + most), dtype=np.int32)  # colbert-ai reads `most` wherever it reads
    for codes, passages in _pairs(folder, chunks):
        of_chunk = np.bincount(codes, minlength=centroids)
        within = np.arange(len(codes)) - np.repeat(np.cumsum(of_chunk) - of_chunk, of_chunk)
        lists[following[codes] + within] = passages
        following += of_chunk
    return torch.from_numpy(lists), torch.from_numpy(counts)


def _pairs(folder: Path, chunks: int) -> Iterator[tuple[Any, Any]]:
    """Yield for each chunk its centroids and the passages that have an embedding there, ascending, each pair once."""
    import numpy as np
    import torch

    first = 0
    for number in range(chunks):
        held = torch.load(folder / f"{number}.codes.pt", map_location="cpu", weights_only=True)
        codes = held.numpy().astype(np.int64)
        lengths = np.array(json.loads((folder / f"doclens.{number}.json").read_bytes()))
        passages = np.repeat(np.arange(first, first + len(lengths)), lengths)
        first += len(lengths)
        pairs = np.unique(codes << 32 | passages)
        yield pairs >> 32, pairs & 0xFFFFFFFF
