"""Several retrievers as one, by reciprocal rank (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from ..common.errors import IndexRefused
from ..common.manifests import json_hash
from .base import WrappingRetriever, check_search, each_once
from .contracts import Retriever
from .passage import Passage

_CONSTANT = 60
"""The paper's k, in 1 / (k + rank): the higher, the less the first ranks stand out."""
_DEPTH = 100
"""Passages that each member is asked for, at least."""


class FusionRetriever(WrappingRetriever):
    """Ranks passages by the sum over its members of 1 / (60 + rank); scores of different scales need no fitting.

    Members may search one corpus or several: a passage is known by its id. Of passages that rank equal, the first
    member's stands first. Safe in several threads if its members are.
    """

    def __init__(self, members: Sequence[Retriever]) -> None:
        made_from = ["fusion", {"constant": _CONSTANT, "depth": _DEPTH}, [member.fingerprint for member in members]]
        name = f"fusion({'+'.join(member.name for member in members)})"
        super().__init__(members, name, json_hash(made_from, ascii=True)[:16])

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list for each query, as single calls would; each member is asked once.

        Raises:
            QueryError: if a query is empty, or k is not positive.
            IndexRefused: if two members found different passages of one id.
        """
        checked = check_search(queries, k)
        if not checked:
            return []
        found = [member.batch(checked, max(k, _DEPTH)) for member in self.members]
        return [self._fused(rankings)[:k] for rankings in zip(*found, strict=True)]

    def _fused(self, rankings: Sequence[list[Passage]]) -> list[Passage]:
        parts: dict[str, list[float]] = {}
        passages: dict[str, Passage] = {}
        for ranking in rankings:
            for rank, passage in enumerate(ranking, start=1):
                _check_same(passages.setdefault(passage.id, passage), passage)
                parts.setdefault(passage.id, []).append(1 / (_CONSTANT + rank))
        scores = {id: fsum(of_one) for id, of_one in parts.items()}  # exact: the same ranks in another order are equal
        best = sorted(scores, key=scores.__getitem__, reverse=True)  # stable: of equals, the first member's
        return each_once(passages[id].model_copy(update={"score": scores[id]}) for id in best)


def _check_same(known: Passage, other: Passage) -> None:
    if (known.title, known.text) != (other.title, other.text):
        raise IndexRefused(
            f"These retrievers cannot be fused: to one the passage {known.id!r} is {known.cited()!r}, to another "
            f"{other.cited()!r}. Index one corpus for both, or give the corpora ids that differ."
        )
