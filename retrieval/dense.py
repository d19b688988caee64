"""Dense retrieval: a passage is one vector, and the nearest to the query's are found through faiss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass

from ..common.errors import QuestreeError
from .base import Hits, NeuralRetriever
from .checkpoints import checkpoint_of
from .contracts import Passages
from .indexes.chunks import chunk_count, read_rows
from .indexes.contents import CheckpointRecord, IndexManifest, PassageStore
from .indexes.encoding import encode_corpus
from .indexes.index_kind import BuildProgress, IndexKind, Order, WrittenIndex
from .sentence_encoder import Pooling, SentenceEncoder, Usage, find_sentence_checkpoint, find_usage

_VECTORS, _INDEX = "vectors", "dense.faiss"
_FLAT = "Flat"
_SEED = 7
_FEWEST_TOKENS = 3  # one between two markers


@dataclass(frozen=True)
class DenseSettings:
    """How the encoder is used and how its vectors are searched.

    Attributes:
        factory: faiss's description of the index. ``Flat`` compares every vector: exact, 4 bytes a dimension in
            memory (23,125 passages of 384 dimensions: 36 MB; 21 million of 768: 65 GB). Large corpora want fewer:
            ``SQfp16``, ``IVF65536,SQ8``, ``OPQ64,IVF65536,PQ64`` …
        search: parameters of such an index, as faiss names them: ``nprobe=64``.
        sample: vectors, at most, on which it is trained.
        pooling, normalised, query_prefix, passage_prefix, window: as in `Usage`; None for what the encoder's folder or
            name says.

    Raises:
        ValidationError: if the sample is empty.
    """

    factory: str = _FLAT
    search: str = ""
    sample: PositiveInt = 200_000
    pooling: Pooling | None = None
    normalised: bool | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    window: int | None = None


class DenseRetriever(NeuralRetriever):
    """The passages whose vectors have the highest product with the query's (Karpukhin et al., EMNLP 2020).

    With normalised vectors the product is the cosine.
    """

    name = "dense"

    def __init__(self, passages: Passages, fingerprint: str, encoder: SentenceEncoder, index: Any) -> None:
        super().__init__(passages, fingerprint, encoder)
        self._index = index

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        hits: list[Hits] = []
        scores, positions = self._index.search(self.encoder.queries(queries).numpy(), k)
        for pairs in map(zip, positions.tolist(), scores.tolist()):
            found = [hit for hit in pairs if hit[0] >= 0]  # an approximate index may find fewer and fill up with -1
            hits.append(sorted(found, key=lambda hit: (-hit[1], hit[0])))  # of equals the earlier first
        return hits


def _write(order: Order) -> WrittenIndex:
    """Encode into chunks, which stay: ``Flat`` searches them, and other indexes are trained on them again."""
    settings: DenseSettings = order.settings or DenseSettings()
    checkpoint = find_sentence_checkpoint(order.checkpoint)
    stated = {field: getattr(settings, field) for field in Usage.__dataclass_fields__}
    usage = find_usage(checkpoint.name, checkpoint.folder, **stated)
    encoder = SentenceEncoder(checkpoint, usage, order.precision)
    if not _FEWEST_TOKENS <= encoder.window <= encoder.longest:
        raise QuestreeError(
            f"{checkpoint.name} reads {_FEWEST_TOKENS} to {encoder.longest} tokens of a text, not {encoder.window} "
            "(window)."
        )
    index = _empty(settings, encoder.dim)
    load = partial(_loaded, checkpoint.name, checkpoint.fingerprint, asdict(usage), encoder.precision)
    filled = encode_corpus(order, _VECTORS, encoder, encoder.identity, load)
    if settings.factory != _FLAT:
        order.report(BuildProgress(f"building {settings.factory}", len(order.passages), len(order.passages)))
        _fill(index, settings, order.folder / _VECTORS, len(order.passages))
        faiss.write_index(index, str(order.folder / _INDEX))
    chosen = {"dim": encoder.dim, "precision": encoder.precision, **asdict(settings), **asdict(usage)}
    return WrittenIndex(chosen, checkpoint, filled)


def _loaded(name: str, fingerprint: str, usage: dict[str, Any], precision: str) -> SentenceEncoder:
    """Return what encodes chunks in another process."""
    built_with = CheckpointRecord(name=name, fingerprint=fingerprint)
    found = checkpoint_of("The index", built_with, find_sentence_checkpoint)
    return SentenceEncoder(found, Usage(**usage), precision)


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore) -> DenseRetriever:
    found = checkpoint_of(folder, manifest.checkpoint, find_sentence_checkpoint)
    settings, dim = DENSE.stored(manifest), int(manifest.settings["dim"])
    usage = Usage(**{field: manifest.settings[field] for field in Usage.__dataclass_fields__})
    encoder = SentenceEncoder(found, usage)
    if settings.factory == _FLAT:
        index = _empty(settings, dim)
        _fill(index, settings, folder / _VECTORS, len(passages))
    else:
        index = faiss.read_index(str(folder / _INDEX))
        _set_search(index, settings)
    return DenseRetriever(passages, manifest.fingerprint, encoder, index)


def _empty(settings: DenseSettings, dim: int) -> Any:
    """Return the index that the settings describe, with nothing in it."""
    with _told_of(settings, dim):
        index = faiss.index_factory(dim, settings.factory, faiss.METRIC_INNER_PRODUCT)
        _set_search(index, settings)
    return index


def _fill(index: Any, settings: DenseSettings, folder: Path, passages: int) -> None:
    """Train an index on a seeded sample if it needs that, and add every vector, a chunk at a time."""
    chunks = [read_rows(folder, number) for number in range(chunk_count(passages))]  # mapped
    with _told_of(settings, index.d):
        if not index.is_trained:
            chosen = np.zeros(passages, dtype=bool)
            chosen[np.random.default_rng(_SEED).permutation(passages)[: settings.sample]] = True
            marks = np.split(chosen, np.cumsum([len(rows) for rows in chunks])[:-1])
            sample = np.concatenate([rows[mark] for rows, mark in zip(chunks, marks, strict=True)])
            index.train(sample.astype("float32"))
        for rows in chunks:
            index.add(rows.astype("float32"))


def _set_search(index: Any, settings: DenseSettings) -> None:
    if settings.search:
        faiss.ParameterSpace().set_index_parameters(index, settings.search)  # type: ignore[arg-type]  # two by one name


@contextmanager
def _told_of(settings: DenseSettings, dim: int) -> Iterator[None]:
    """Report which index faiss refuses to make in the block."""
    try:
        yield
    except RuntimeError as problem:
        said = str(problem).strip().splitlines()[0].rsplit("Error: ", 1)[-1][:200]  # without where in faiss's source
        raise QuestreeError(
            f"faiss makes no index {settings.factory!r} (search {settings.search!r}) of vectors with {dim} dimensions: "
            f"{said}. Choose another factory, or fewer lists for so few passages."
        ) from None


DENSE = IndexKind(
    "dense",
    "a vector a passage: Contriever, E5, any sentence encoder (MiniLM by default); faiss",
    _write,
    _load,
    settings=DenseSettings,
    work=_VECTORS,
    find=find_sentence_checkpoint,
)
