"""Linked retrieval: one search finds a chain of passages, by the words of the question and by what passages name.

Passages of an encyclopedia name one another. The retriever that is linked finds the first of them; those that its best
passages name, that name them, or that share a name with them are candidates too (`candidates`), and a small model
chooses among all of these twice: by how they are linked to what the words found best, and then to what it chose itself
(`numbers`, `choice`). No LM is asked, and no encoder beside the linked retriever's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import IndexRefused
from ..base import Hits, IndexRetriever
from ..bm25 import BM25, BM25Retriever, BM25Settings
from ..contracts import Retriever, Similarity
from ..indexes.contents import IndexManifest, PassageStore
from ..indexes.index_kind import IndexKind, Order, Written
from ..passage import Passage
from .choice import Choice, shipped
from .links import Links

if TYPE_CHECKING:
    import numpy as np

    from .pool import Question

    Array = np.ndarray[Any, Any]

KIND = "linked"
_FOUND = 100
"""Passages that the linked retriever is asked for, at least."""


class LinkedRetriever(IndexRetriever):
    """Another retriever's best passages, and those that they lead to. Safe in several threads if the other one is.

    Args:
        base: that is linked; it searches the passages between which the links are, or some of them.
        words: BM25 over these passages, which tells what of a question a passage leaves open.
        links: between these passages.
        choice: chooses; by default the one that comes with questree.
        fingerprint: of words and links.
        choice_file: where a choice of one's own is kept: beside the links.
    """

    def __init__(
        self,
        base: Retriever,
        words: BM25Retriever,
        links: Links,
        choice: Choice | None = None,
        *,
        fingerprint: str,
        choice_file: Path | None = None,
    ) -> None:
        self.choice, self.choice_file = choice or shipped(), choice_file
        rule = f"linked 1 {base.fingerprint} {fingerprint} {self.choice.fingerprint}"
        super().__init__(words.passages, hashlib.sha256(rule.encode()).hexdigest()[:16])
        self.name, self.remote = f"linked {base.name}", base.remote
        self.base, self.words, self.links, self._of_links = base, words, links, fingerprint

    @property
    def similarity(self) -> Similarity | None:
        """Return the linked retriever's comparison of texts."""
        return self.base.similarity

    def over(self, base: Retriever, choice: Choice | None = None) -> LinkedRetriever:
        """Return the same links over another retriever of these passages, with the same choice if none is given."""
        return LinkedRetriever(
            base,
            self.words,
            self.links,
            choice or self.choice,
            fingerprint=self._of_links,
            choice_file=self.choice_file,
        )

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first; each says which better one it is linked from.

        Raises:
            QueryError: if a query is empty, or k is not positive.
            IndexRefused: if the linked retriever finds a passage that the links do not know.
        """
        found = super().batch(queries, k)
        return [self._with_sources(passages) for passages in found]

    def question(self, query: str) -> Question:
        """Return what a query asks of these links."""
        from .pool import Question

        return Question(query, self.words, self.links)

    def rankings(self, queries: Sequence[str], k: int = 1) -> list[Array]:
        """Return (found,) positions of what the linked retriever finds for each query, best first."""
        import numpy as np

        found = self.base.batch(list(queries), max(k, _FOUND))
        rankings = []
        for passages in found:
            positions = self.links.positions([one.id for one in passages])
            if (positions < 0).any():
                unknown = passages[int(np.argmin(positions))].id
                raise IndexRefused(
                    f"{self.base.name} found the passage {unknown!r}, which the links do not know: they are older than "
                    "its passages, or of others. Make them again: questree index --links."
                )
            rankings.append(positions)
        return rankings

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        rankings = self.rankings(queries, k)
        return [self._hits(query, ranking, k) for query, ranking in zip(queries, rankings, strict=True)]

    def _hits(self, query: str, ranking: Array, k: int) -> Hits:
        """Return the best candidates by the second choice; of equal ones the earlier passage first."""
        import numpy as np

        from .search import chosen

        if not len(ranking):
            return []
        positions, scores = chosen(self.question(query), ranking, self.choice.first.scores, self.choice.second.scores)
        best = np.argsort(-scores, kind="stable")[:k]
        return [(int(positions[place]), float(scores[place])) for place in best]

    def _with_sources(self, passages: list[Passage]) -> list[Passage]:
        """Return the passages, each with the title of the first better one that names its title or that it names."""

        if not passages:
            return []
        positions = self.links.positions([one.id for one in passages])
        bears = self.links.title_of[positions]
        of, named = self.links.links.of(positions)
        names = [set(named[of == place].tolist()) for place in range(len(positions))]
        told = []
        for place, passage in enumerate(passages):
            better = (
                other.title
                for rank, other in enumerate(passages[:place])
                if other.title and (int(bears[place]) in names[rank] or int(bears[rank]) in names[place])
            )
            told.append(passage.model_copy(update={"linked_from": next(better, "")}))
        return told


def _write(order: Order) -> Written:
    written = BM25.write(order)
    Links.of_passages(order.passages, order.report).save(order.folder)
    return written


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore, checkpoint: object) -> LinkedRetriever:
    words = BM25Retriever.load(folder, passages, manifest.fingerprint, BM25Settings(**manifest.settings))
    own, links = folder.with_name(f"{folder.name}.choice.json"), Links.load(folder, len(passages))
    choice = Choice.load(own) if own.exists() else None
    return LinkedRetriever(words, words, links, choice, fingerprint=manifest.fingerprint, choice_file=own)


LINKED = IndexKind(
    KIND,
    "BM25, and the passages that its best ones lead to by the names in them; needs no model",
    _write,
    _load,
    settings=BM25Settings,
    again=BM25.again,
)
