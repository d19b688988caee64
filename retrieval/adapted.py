"""Retrievers of others, such as DSPy's, as retrievers of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..common.errors import QuestreeError
from ..common.event_loop import no_coroutine
from ..common.manifests import json_hash
from .contracts import Retriever
from .passage import Passage


def as_retriever(given: Any) -> Retriever:
    """Return what is given if it is a `Retriever`; else a retriever around it.

    Args:
        given: a retriever; or whatever can be called with a query, and with ``k`` or without, and gives passages:
            `Passage` objects, texts (``title | text`` as DSPy has them), or dicts with a ``text``; in a list or in a
            ``dspy.Prediction``. So are ``dspy.Retrieve``, ``dspy.ColBERTv2`` and ``dspy.retrievers.Embeddings``.

    Raises:
        QuestreeError: it cannot be called.
    """
    if isinstance(given, Retriever):
        return given
    if type(given).__name__ == "Embedder":  # of DSPy
        raise QuestreeError(
            "An embedder has no passages: give dspy.retrievers.Embeddings(corpus=…, embedder=…), or an index."
        )
    if not callable(given) or isinstance(given, type):
        raise QuestreeError(
            f"{given!r} is no retriever: give an object that is called with a query, and gives passages."
        )
    return AdaptedRetriever(given)


class AdaptedRetriever(Retriever):
    """A retriever around a function from a query to passages.

    A search may wait for another process as far as anybody knows, so it is given up when a question's time is over.

    Args:
        search: its ``name`` and ``fingerprint`` are taken if it has them. Without a fingerprint, the texts that it
            searches tell it from another one if they are in its ``corpus``, else only its name does.
    """

    remote = True

    def __init__(self, search: Callable[..., Any]) -> None:
        kind = getattr(search, "__name__", type(search).__name__)
        self.name = str(getattr(search, "name", None) or kind)
        corpus = getattr(search, "corpus", None)
        told = json_hash(list(map(str, corpus)))[:16] if isinstance(corpus, (list, tuple)) else self.name
        self.fingerprint = str(getattr(search, "fingerprint", None) or told)
        self._search, self._takes_k = search, _takes_k(search)

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first, none twice.

        A retriever that takes no k may give fewer than k.
        """
        return [self._found(query, k) for query in queries]

    def _found(self, query: str, k: int) -> list[Passage]:
        found = self._search(query, k=k) if self._takes_k else self._search(query)
        no_coroutine(found, self.name)
        passages = found if isinstance(found, list) else getattr(found, "passages", found)
        if not isinstance(passages, (list, tuple)):
            raise TypeError(f"{self.name} gave {type(found).__name__}, and no list of passages")
        ids = getattr(found, "indices", None) or [None] * len(passages)
        pairs = zip(passages, ids, strict=True)
        distinct: dict[tuple[str, str, str], Passage] = {}
        for rank, (one, id) in enumerate(pairs, start=1):
            passage = _passage(one, id, rank)
            distinct.setdefault((passage.id, passage.title, passage.text), passage)
        return list(distinct.values())[:k]


def _takes_k(search: Callable[..., Any]) -> bool:
    parameters = inspect.signature(search).parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    return "k" in {parameter.name for parameter in parameters} or inspect.Parameter.VAR_KEYWORD in kinds


def _passage(found: Any, id: Any, rank: int) -> Passage:
    """Return what was found as a passage. Without a score of its own it has one that falls with its rank."""
    if isinstance(found, Passage):
        return found
    fields = found if isinstance(found, Mapping) else {"text": found}
    text = fields.get("text") or fields.get("long_text")
    if not isinstance(text, str):
        raise TypeError(f"a passage is {type(found).__name__}, and no text")
    title = fields.get("title")
    if title is None and " | " in text:
        title, _, text = text.partition(" | ")
    title, score = str(title or ""), fields.get("score")
    known = next((one for one in (fields.get("id"), fields.get("pid"), id) if one is not None), None)
    return Passage(
        id=json_hash([title, text], ascii=True)[:16] if known is None else str(known),
        title=title,
        text=text,
        score=1 / rank if score is None else float(score),
        source=str(fields.get("source") or fields.get("url") or ""),
    )
