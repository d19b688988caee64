"""Linked retrieval: one search finds a chain of passages, by the words of the question and by what passages name.

Passages of an encyclopedia name one another. The retriever that is linked finds the first of them; those that its best
passages name, that name them, or that share a name with them are candidates too (`candidates`), and a small model
chooses among all of these twice (`search`): by how they are linked to what the words found best, and then to what it
chose itself (`features`, `choice`). No LM is asked, and no encoder beside the linked retriever's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ...common.errors import IndexRefused
from ..base import Hits, IndexRetriever
from ..bm25 import BM25, BM25Retriever
from ..contracts import Retriever, Similarity
from ..indexes.contents import IndexManifest, PassageStore
from ..indexes.index_kind import IndexKind, Order, Written
from ..lists import Array
from ..passage import Passage
from .choice import Choice
from .links import Links
from .pool import QuestionTerms
from .search import search

KIND = "linked"
_FOUND = 100
"""Passages that the linked retriever is asked for, at least."""


class LinkedRetriever(IndexRetriever):
    """Another retriever's best passages, and those that they lead to. Safe in several threads if the other one is.

    Args:
        base: that is linked; it searches the passages between which the links are, or some of them.
        words: BM25 over these passages, which tells what of a question a passage leaves open.
        links: between these passages.
        choice: chooses.
        choice_file: where a choice of one's own is kept: beside the links.
    """

    def __init__(
        self, base: Retriever, words: BM25Retriever, links: Links, choice: Choice, choice_file: Path | None = None
    ) -> None:
        rule = f"linked 2 {base.fingerprint} {words.fingerprint} {choice.fingerprint}"
        super().__init__(words.passages, hashlib.sha256(rule.encode()).hexdigest()[:16])
        self.name, self.remote = f"linked {base.name}", base.remote
        self.base, self.words, self.links, self.choice, self.choice_file = base, words, links, choice, choice_file

    @property
    def similarity(self) -> Similarity | None:
        """Return the linked retriever's comparison of texts."""
        return self.base.similarity

    def over(self, base: Retriever) -> LinkedRetriever:
        """Return the same links and choice over another retriever of these passages."""
        return LinkedRetriever(base, self.words, self.links, self.choice, self.choice_file)

    def linked_anew(self, base: Retriever, words: BM25Retriever) -> LinkedRetriever:
        """Return links that are made between the passages of another corpus, with the same choice."""
        return LinkedRetriever(base, words, Links.of_passages(words.passages), self.choice)

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first; each says which better one it is linked from.

        Raises:
            QueryError: if a query is empty, or k is not positive.
            IndexRefused: if the linked retriever finds a passage that the links do not know.
        """
        return [self._with_sources(passages) for passages in super().batch(queries, k)]

    def terms(self, query: str) -> QuestionTerms:
        """Return what a query asks of these links."""
        return QuestionTerms(query, self.words, self.links)

    def ranking(self, found: Sequence[Passage]) -> Array:
        """Return (found,) the positions of what the linked retriever found."""
        positions = self.links.positions([one.id for one in found])
        if (positions < 0).any():
            raise IndexRefused(
                f"{self.base.name} found the passage {found[int(positions.argmin())].id!r}, which the links do not "
                "know: they are older than its passages, or of others. Make them again: questree index --links."
            )
        return positions

    def rankings(self, queries: Sequence[str], k: int = 1) -> list[Array]:
        """Return (found,) positions of what the linked retriever finds for each query, best first."""
        return [self.ranking(found) for found in self.base.batch(list(queries), max(k, _FOUND))]

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        hits: list[Hits] = []
        for query, ranking in zip(queries, self.rankings(queries, k), strict=True):
            positions, scores = search(self.terms(query), ranking, self.choice) if len(ranking) else (ranking, ranking)
            hits.append(list(zip(positions[:k].tolist(), scores[:k].tolist(), strict=True)))
        return hits

    def _with_sources(self, passages: list[Passage]) -> list[Passage]:
        """Return the passages, each with the title of the first better one that names its title or that it names."""
        positions = self.links.positions([one.id for one in passages])
        bears = self.links.title_of[positions].tolist()
        of, named = self.links.links.of(positions)
        names = [set(named[of == place].tolist()) for place in range(len(positions))]
        told = []
        for place, passage in enumerate(passages):
            linked = (rank for rank in range(place) if bears[place] in names[rank] or bears[rank] in names[place])
            source = next((passages[rank].title for rank in linked if passages[rank].title), "")
            told.append(passage.model_copy(update={"linked_from": source}))
        return told


def _write(order: Order) -> Written:
    written = BM25.write(order)
    Links.of_passages(order.passages, order.report).save(order.folder)
    return written


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore, checkpoint: object) -> LinkedRetriever:
    words, links = BM25.load(folder, manifest, passages, None), Links.load(folder, len(passages))
    assert isinstance(words, BM25Retriever)
    own = folder.parent.with_name(f"{folder.parent.name}.choice.json")  # beside the index, not in a version of it
    return LinkedRetriever(words, words, links, Choice.load(own) if own.exists() else Choice.load(), own)


LINKED = IndexKind(
    KIND,
    "BM25, and the passages that its best ones lead to by the names in them; needs no model",
    _write,
    _load,
    settings=BM25.settings,
)
