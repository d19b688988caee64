"""What every retriever and every reader promises; programs know nothing more of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from .passage import Passage


@runtime_checkable
class Retriever(Protocol):
    """Finds passages. Given to a program, never global; safe to call from several threads."""

    name: str
    """Which retriever this is, for people: ``colbert-exact``, ``bm25`` …"""

    fingerprint: str
    """Identity of the index behind it: changes with corpus, checkpoint and settings."""

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        """The k best passages for the query, best first, with their scores. Fewer when the corpus is smaller."""
        ...

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """One list for each query, as single calls would give."""
        ...


class Span(BaseModel):
    """What a reader takes from a passage as the answer to a query.

    Attributes:
        text: the answer as it stands in the passage; empty means that the passage holds none.
        score: how sure the reader is that the passage answers the query, as a logit.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    score: float


class Reader(Protocol):
    """Reads the answer to a query from a passage."""

    name: str
    threshold: float
    """The score above which its spans are trusted against the LM (SearChain's theta), on its own scale."""

    def __call__(self, query: str, passage: Passage) -> Span:
        """The passage's answer to the query, with the reader's confidence."""
        ...


class DuplicateCheck(Protocol):
    """Tells whether a query asks what another one asked before."""

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """Index in ``seen`` of the query that it repeats, or None."""
        ...
