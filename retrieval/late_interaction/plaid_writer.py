"""The writer of PLAID indexes from stored embeddings, in colbert-ai's format and in bounded memory.

An embedding is its nearest centroid, and what is left in a few bits a dimension: ColBERTv2's residual compression
(Santhanam et al., NAACL 2022, section 3.3). Two things differ from colbert-ai: where the buckets of a residual lie,
and, on a CPU, how the nearest centroid is found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
import torch
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass

from ...common.errors import QuestreeError
from ..indexes.index_kind import BuildProgress, Report
from ..lists import place_among_equals
from .colbert_ai import colbert_ready
from .embeddings import Embeddings
from .packed_rows import lloyd_max

_SEED = 12345  # colbert-ai's
_HELD_OUT = 0.05
"""The share of the sample that colbert-ai keeps from k-means."""
_SAMPLED_ROWS = 1 << 24
"""Embeddings, at most, on which the centroids are trained (13 GB at 128 dimensions, for some minutes). colbert-ai's
sample, 16 * sqrt(120 * passages) passages, is larger above 600,000 passages or so: 50 GB for Wikipedia's 21 million."""
_TOGETHER = 25_000
"""Passages that are compressed at a time, into one file."""


@dataclass(frozen=True)
class PlaidSettings:
    """How embeddings are compressed, and how far a search looks.

    Attributes:
        nbits: the bits for each dimension of a residual: 1, 2, 4 or 8.
        kmeans_iterations: of the centroids' training.
        ncells: how many centroids are probed for each query token.
        centroid_score_threshold: a centroid below it is ignored when candidates are pruned.
        ndocs: how many candidates survive the first pruning; a quarter of them is scored in full.

    Raises:
        ValidationError: if the number of bits is another, or one of the others below 1.
    """

    nbits: Literal[1, 2, 4, 8] = 8
    kmeans_iterations: PositiveInt = 4
    ncells: PositiveInt = 4
    centroid_score_threshold: float = 0.45
    ndocs: PositiveInt = 1024


def write_plaid(folder: Path, embeddings: Embeddings, settings: PlaidSettings, report: Report = lambda _: None) -> None:
    """Compress stored embeddings into an index, in this process and on one device.

    It needs memory for the sample of embeddings, then for 25,000 passages at a time, then for the lists of passages by
    centroid, which a search holds too.
    """
    _check(embeddings)
    folder.mkdir()
    with colbert_ready():
        from colbert.infra import ColBERTConfig

        report(BuildProgress("sampling embeddings", 0, 0))
        sample, mean_length = _sampled(embeddings)
        count = _centroids_for(len(embeddings.lengths) * mean_length)
        held_out = int(min(_HELD_OUT * len(sample), 50_000))
        report(BuildProgress(f"training {count:,} centroids on {len(sample) - held_out:,} embeddings", 0, 0))
        centroids = _trained(sample[: len(sample) - held_out], count, settings.kmeans_iterations)
        config = ColBERTConfig(dim=embeddings.dim, nbits=settings.nbits)
        make_codec(config, centroids, sample[len(sample) - held_out :]).save(str(folder))
        del sample
        chunks = range(0, len(embeddings.lengths), _TOGETHER)
        metadata = {"num_chunks": len(chunks), "num_partitions": count, "num_embeddings": len(embeddings)}
        described = {"config": {"dim": embeddings.dim, "nbits": settings.nbits}, **metadata}
        (folder / "metadata.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        codec = codec_class().load(str(folder))
        for number, first in enumerate(chunks):
            report(BuildProgress("compressing", first, len(embeddings.lengths)))
            lengths = embeddings.lengths[first : first + _TOGETHER].tolist()
            rows = _rows(embeddings, range(first, first + len(lengths)))
            codec.compress(rows if torch.cuda.is_available() else rows.float()).save(str(folder / str(number)))
            (folder / f"doclens.{number}.json").write_text(json.dumps(lengths), encoding="utf-8")
        report(BuildProgress("listing passages by centroid", 0, 0))
        torch.save(passages_by_centroid(folder, len(chunks), count), folder / "ivf.pid.pt")


def _check(embeddings: Embeddings) -> None:
    rows = len(embeddings)
    if embeddings.dim % 8:
        raise QuestreeError(
            f"PLAID cannot pack {embeddings.dim} dimensions into bytes: a multiple of 8 is needed. "
            "Choose exact search: --kind exact."
        )
    centroids = _centroids_for(rows)
    if centroids > int(rows * (1 - _HELD_OUT)):
        raise QuestreeError(
            f"{len(embeddings.lengths)} passages ({rows} token embeddings) are too few for PLAID, which would train "
            f"{centroids} centroids on them. Use exact search, which is better and faster there: --kind exact."
        )


def _centroids_for(rows: float) -> int:
    """Return how many centroids colbert-ai trains for so many embeddings."""
    return 1 << int(16 * rows**0.5).bit_length() - 1


def _rows(embeddings: Embeddings, positions: Any) -> Any:
    return torch.from_numpy(np.concatenate([embeddings.of(position) for position in positions]))


def _sampled(embeddings: Embeddings) -> tuple[Any, float]:
    """Return a seeded choice of the rows, in random order, and how many a passage of colbert-ai's sample has."""
    import random

    random.seed(_SEED)
    np.random.seed(_SEED)
    torch.manual_seed(_SEED)
    passages = len(embeddings.lengths)
    chosen = sorted(random.sample(range(passages), min(1 + int(16 * (120 * passages) ** 0.5), passages)))
    lengths = embeddings.lengths[chosen]
    order = np.random.permutation(chosen)
    order = order[np.cumsum(embeddings.lengths[order]) <= max(_SAMPLED_ROWS, int(lengths.max()))]
    rows = _rows(embeddings, order)
    return rows[torch.randperm(len(rows))], float(lengths.mean())


def _trained(rows: Any, count: int, iterations: int) -> Any:
    """Return the (count, dim) centroids, unit vectors, as colbert-ai trains them."""
    on_gpu = torch.cuda.is_available()
    kmeans = faiss.Kmeans(rows.shape[1], count, niter=iterations, gpu=on_gpu, seed=123, min_points_per_centroid=1)
    kmeans.train(rows.float().numpy())
    centroids = torch.nn.functional.normalize(torch.from_numpy(kmeans.centroids), dim=-1)
    return centroids.half() if on_gpu else centroids


def passages_by_centroid(folder: Path, chunks: int, centroids: int) -> tuple[Any, Any]:
    """Return the passages that have an embedding at each centroid, ascending, as colbert-ai's ``optimize_ivf`` does.

    This goes chunk by chunk: colbert-ai sorts the codes of all embeddings, 60 GB for Wikipedia's 21 million passages.

    Returns:
        (passages,) int32, one centroid's after the other's, and (centroids,) how many each has.
    """
    counts = np.zeros(centroids, dtype=np.int64)
    for codes, _ in _pairs(folder, chunks):
        counts += np.bincount(codes, minlength=centroids)
    following = np.cumsum(counts) - counts
    last, most = int(following[-1]), int(counts.max())
    lists = np.zeros(max(int(counts.sum()), last + most), dtype=np.int32)  # colbert-ai reads `most` wherever it reads
    for codes, passages in _pairs(folder, chunks):
        lists[following[codes] + place_among_equals(codes)] = passages
        following += np.bincount(codes, minlength=centroids)
    return torch.from_numpy(lists), torch.from_numpy(counts)


def _pairs(folder: Path, chunks: int) -> Iterator[tuple[Any, Any]]:
    """Yield for each chunk its centroids and the passages that have an embedding there, ascending, each pair once."""
    first = 0
    for number in range(chunks):
        held = torch.load(folder / f"{number}.codes.pt", map_location="cpu", weights_only=True)
        lengths = np.array(json.loads((folder / f"doclens.{number}.json").read_bytes()))
        passages = np.repeat(np.arange(first, first + len(lengths)), lengths)
        first += len(lengths)
        pairs = np.unique(held.numpy().astype(np.int64) << 32 | passages)
        yield pairs >> 32, pairs & 0xFFFFFFFF


def make_codec(config: Any, centroids: torch.Tensor, held_out: torch.Tensor) -> Any:
    """Return the codec of an index; its buckets fit the residuals of embeddings that no centroid was trained on.

    Args:
        centroids: (centroids, dim), unit vectors.
        held_out: (rows, dim).
    """
    codec = codec_class()(config=config, centroids=centroids)
    rows = held_out.to(codec.centroids.dtype)
    nearest = codec.compress_into_codes(rows, out_device="cpu")
    residuals = rows.cpu().float() - codec.lookup_centroids(nearest, out_device="cpu").float()
    cutoffs, weights = lloyd_max(residuals.flatten(), 2**config.nbits)
    return codec_class()(
        config=config,
        centroids=centroids,
        avg_residual=residuals.abs().mean(),
        bucket_cutoffs=cutoffs,
        bucket_weights=weights,
    )


def codec_class() -> Any:
    """Return colbert-ai's codec, changed: on a CPU faiss finds the same nearest centroids, in a quarter of the time.

    It packs residuals to the same bytes, and also those whose dimensions are a multiple of 8, but not of 8 * nbits.
    """
    from colbert.indexing.codecs.residual import ResidualCodec

    class Codec(ResidualCodec):
        def compress_into_codes(self, embs: torch.Tensor, out_device: Any) -> torch.Tensor:
            if self.use_gpu:
                codes: torch.Tensor = super().compress_into_codes(embs, out_device)
                return codes
            index = faiss.IndexFlatIP(self.dim)
            index.add(self.centroids.numpy())
            return torch.from_numpy(index.search(embs.float().numpy(), 1)[1][:, 0])

        def binarize(self, residuals: torch.Tensor) -> torch.Tensor:
            buckets = torch.bucketize(residuals.float(), self.bucket_cutoffs)
            turned = self.reversed_bit_map[buckets].unflatten(1, (-1, 8 // self.nbits))  # lowest bit first
            places = torch.arange(8 - self.nbits, -1, -self.nbits, device=turned.device)
            packed: torch.Tensor = (turned << places).sum(-1)
            return packed.to(torch.uint8)

    return Codec
