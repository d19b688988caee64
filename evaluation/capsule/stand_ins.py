"""What stands in a replayed program in the place of LM, retriever, reader and duplicate check: none is ever asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import dspy
from dspy.utils.exceptions import LMError

from ...common.errors import QuestreeError
from ...lm.failure import first_line
from ...retrieval import Passage, Span
from ...retrieval.base import BaseRetriever
from ...retrieval.contracts import Similarity
from ..environment import Environment


def _refuse(*given: Any, **more: Any) -> NoReturn:
    raise AssertionError("a replay asks nothing outside the capsule")


class StoredRetriever(BaseRetriever):
    """A retriever by its name and fingerprint alone."""

    def __init__(self, facts: Mapping[str, str], compares: bool):
        self.name, self.fingerprint = str(facts["name"]), str(facts["fingerprint"])
        self._compares = compares

    @property
    def similarity(self) -> Similarity | None:
        """Return a function if the retriever had one."""
        return _refuse if self._compares else None

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Refuse to search: searches are answered from the capsule."""
        _refuse()


class StoredReader:
    """A trained reader by its name and threshold alone."""

    read_many = None

    def __init__(self, facts: Mapping[str, Any]):
        self.name, self.threshold = str(facts["name"]), float(facts["threshold"])

    def __call__(self, query: str, passage: Passage) -> Span:
        """Refuse to read: readings are answered from the capsule."""
        _refuse()


class StoredDuplicates:
    """A duplicate check by embeddings or a model."""

    def __call__(self, query: str, seen: Sequence[str]) -> int | None:
        """Refuse to compare: comparisons are answered from the capsule."""
        _refuse()


class _NoEngine:
    complete = close = staticmethod(_refuse)


def unasked_lm(name: str, around: Environment) -> dspy.LM | None:
    """Return an LM of this name, for the options of its requests; None if the run had none.

    Raises:
        QuestreeError: no LM can have these options.
    """
    if name == "none":
        return None
    options: dict[str, Any] = {**around.options, "engine": _NoEngine(), "cache": False, "num_retries": around.retries}
    try:
        return dspy.LM(**{**options, "model": name})
    except (TypeError, ValueError, LMError) as problem:
        raise QuestreeError(f"{name} cannot have the options of this run: {first_line(problem)}.") from problem
