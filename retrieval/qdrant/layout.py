"""How a collection is laid out: what is stored for a passage, in which form, and over how many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import PositiveInt
from pydantic.dataclasses import dataclass

from ..passage import Passage
from .words import Words

if TYPE_CHECKING:
    from qdrant_client import models

TOKENS, WORDS = "tokens", "words"
"""The names of a passage's vectors: one for each of its tokens, and the sparse one of its words."""
_RESCORED = 4.0


@dataclass(frozen=True)
class QdrantSettings:
    """How many passages are gathered, and how they are stored.

    Attributes:
        candidates: passages that BM25 gathers for a query; as many as are asked for, if those are more.
        quantization: of token embeddings, beside the whole ones: int8, binary or none. Candidates are compared by the
            smaller ones, and the best of these, four times as many as are asked for, by the whole ones.
        in_memory: whether every node holds its quantized embeddings in memory; else in the system's cache, as it fits.
        shards: parts that the collection is divided into; give each node one or more.
        replicas: copies of each part, on as many nodes.
    """

    candidates: PositiveInt = 100
    quantization: Literal["int8", "binary", "none"] = "int8"
    in_memory: bool = False
    shards: PositiveInt = 1
    replicas: PositiveInt = 1


def layout(dim: int, settings: QdrantSettings) -> dict[str, Any]:
    """Return the arguments for Qdrant's ``create_collection``.

    Whole embeddings stay on the disk, as the float16 in which they were made. They are compared with candidates only:
    they need no graph (``m=0``), which takes longer to make than the embeddings.
    """
    from qdrant_client import models

    tokens = models.VectorParams(
        size=dim,
        distance=models.Distance.DOT,  # they have the length 1
        datatype=models.Datatype.FLOAT16,
        on_disk=True,
        hnsw_config=models.HnswConfigDiff(m=0),
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        quantization_config=_quantization(settings),
    )
    return {
        "vectors_config": {TOKENS: tokens},
        "sparse_vectors_config": {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        "shard_number": settings.shards,
        "replication_factor": settings.replicas,
        "on_disk_payload": True,
    }


def _quantization(settings: QdrantSettings) -> models.QuantizationConfig | None:
    from qdrant_client import models

    if settings.quantization == "int8":
        int8 = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=settings.in_memory)
        return models.ScalarQuantization(scalar=int8)
    if settings.quantization == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=settings.in_memory))
    return None


def rescoring(settings: QdrantSettings) -> models.SearchParams | None:
    """Return how the best of quantized embeddings are compared again by the whole ones; None if all are whole."""
    from qdrant_client import models

    if settings.quantization == "none":
        return None
    return models.SearchParams(quantization=models.QuantizationSearchParams(rescore=True, oversampling=_RESCORED))


def point_of(position: int, passage: Passage, words: Words, rows: Any) -> models.PointStruct:
    """Return what is stored for a passage; ``rows`` is (tokens, dim), an array of numpy."""
    from qdrant_client import models

    vectors: dict[str, Any] = {TOKENS: rows.tolist(), WORDS: models.SparseVector(indices=words[0], values=words[1])}
    kept = {"id", "title", "text"} | ({"source", "start", "end"} if passage.source else set())
    return models.PointStruct(id=position, vector=vectors, payload=passage.model_dump(include=kept))


def passage_from_point(point: models.Record | models.ScoredPoint) -> Passage:
    """Return the passage of a point."""
    return Passage.model_validate({**(point.payload or {}), "score": getattr(point, "score", 0.0)})
