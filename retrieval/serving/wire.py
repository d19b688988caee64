"""The messages between the retriever server and its client, as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ..passage import Passage


class _Strict(BaseModel):
    """A message: nothing is converted, a number must be finite, and unknown fields are left out, for later versions."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class SearchRequest(_Strict):
    """``POST /search``: the k best passages for each query."""

    queries: list[str] = Field(min_length=1)
    k: int = Field(default=10, ge=1, lt=2**31)


class Results(_Strict):
    """The answer to a `SearchRequest`: a list for each query, best first, and the index that it comes from."""

    fingerprint: str = Field(min_length=1)
    results: list[list[Passage]]


class Compare(_Strict):
    """``POST /similarity``: how alike texts are, for retrievers that can tell."""

    texts: list[str] = Field(min_length=1)
    others: list[str] = Field(min_length=1)


class Likeness(_Strict):
    """The answer to a `Compare`: a row for each text, and in it a number for each other text."""

    fingerprint: str = Field(min_length=1)
    rows: list[list[float]]


class Health(_Strict):
    """``GET /health``: what is served, and how much a request may ask for.

    Attributes:
        name: the retriever's: ``bm25``, ``colbert-exact`` …
        fingerprint: of its index.
        passages: how many it searches; None if that is not known.
        similarity: whether ``/similarity`` answers.
        most_passages: the most passages in one answer, of all its queries together.
    """

    status: str = "ok"
    name: str = Field(min_length=1)
    fingerprint: str = Field(min_length=1)
    passages: int | None
    similarity: bool
    most_passages: int = Field(ge=1)
