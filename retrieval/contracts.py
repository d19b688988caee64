"""What every retriever and every reader promises; programs know nothing more of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from .passage import Passage

Similarity = Callable[[Sequence[str], Sequence[str]], list[list[float]]]
"""Compares texts in meaning: gives a row for each text, and in it a number for each other text."""

_QUESTION: ContextVar[str | None] = ContextVar("question", default=None)


class Passages(Protocol):
    """A corpus by position: a list, or a ``PassageStore``."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> Passage: ...


class Retriever(ABC):
    """Finds passages. Given to a program, never global; safe to call from several threads.

    A subclass writes `batch`, and overrides what it has beside it.
    """

    name: str
    """Which retriever this is, for people: ``colbert-exact``, ``bm25`` …"""

    fingerprint: str
    """Identity of the index behind it: changes with corpus, checkpoint and settings."""

    remote: bool = False
    """Whether a search waits for another process. Such a search is given up when a question's time is over."""

    passages: Passages | None = None
    """The corpus, or None if it is not in this process."""

    place: Callable[[], Retriever] | None = None
    """Opens the same retriever in another process; None for one that has no place of its own."""

    folder: str = ""
    """The name of the folder of the index behind it, for people; empty if it is from none."""

    similarity: Similarity | None = None
    """Compares texts by the retriever's embeddings; None if it has none."""

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        """Return the k best passages for the query, best first, with their scores; fewer if no more can be found.

        BM25, and what gathers by it, finds only passages that hold a word of the query; all others find as many as the
        corpus has.
        """
        return self.batch([query], k)[0]

    @abstractmethod
    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first, as single calls would."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Retriever:
        """Return the retriever itself: copies of a program share it."""
        return self

    def __reduce__(self) -> Any:
        """Let it travel to another process by its place, if it has one: an index is never written into a pickle."""
        return object.__reduce_ex__(self, 2) if self.place is None else (self.place, ())


def check_found(found: Any) -> list[Passage]:
    """Return what a retriever gave for a query, if it is a list of passages of texts, with finite scores.

    Raises:
        TypeError: if it is something else; Pydantic checks no passage that was made by ``model_construct``.
        ValueError: if a score is infinite or no number: such passages have no order.
    """
    if not isinstance(found, list) or not all(isinstance(one, Passage) for one in found):
        raise TypeError("the retriever gave something else than a list of passages")
    for passage in found:
        if not all(isinstance(text, str) for text in (passage.id, passage.title, passage.text)):
            raise TypeError("the retriever gave a passage whose id, title or text is no text")
        if not isfinite(passage.score):
            raise ValueError(f"the retriever gave passage {passage.id!r} the score {passage.score}")
    return found


@contextmanager
def asking(question: str) -> Iterator[None]:
    """Tell retrievers which question the searches in this block are made for, also in threads with a copied context."""
    token = _QUESTION.set(question)
    try:
        yield
    finally:
        _QUESTION.reset(token)


def asked_question() -> str | None:
    """Return the question that searches are made for, or None outside of `asking`."""
    return _QUESTION.get()


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

    @property
    def read_many(self) -> Callable[[Sequence[tuple[str, Passage]]], list[Span]] | None:
        """Return the function that reads many pairs of query and passage together, or None if it reads each alone."""

    def __call__(self, query: str, passage: Passage) -> Span:
        """Return the passage's answer to the query, with the reader's confidence."""


class DuplicateCheck(Protocol):
    """Tells whether a query asks what another one asked before."""

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """Return the index in ``seen`` of the query that it repeats, or None."""
