"""Linked retrieval: one search finds a chain of passages, by the words of the question and by what passages name.

The retriever that is linked finds some of them. Those that its best ones name, that name these, or that share a name
with them (`names`, `links`) are candidates too (`pool`), and a small model chooses among all of them twice: by how they
are linked to what the words found best, and then to what it chose itself (`features`, `choice`). No LM is asked.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from ...common.errors import IndexRefused, QuestreeError
from ...common.files import in_turn
from ..base import Hits, IndexRetriever
from ..bm25 import BM25, BM25Retriever, BM25Settings
from ..contracts import Retriever
from ..index_builder import add_to_index, build_index
from ..index_folder import load_index
from ..indexes.contents import IndexManifest, PassageStore, corpus_hash, read_manifest
from ..indexes.index_kind import IndexKind, Order, Report, WrittenIndex
from ..lists import Array
from ..passage import Passage
from .choice import Choice
from .links import Links
from .pool import QuestionTerms

logger = logging.getLogger(__name__)

KIND = "linked"
_FOUND = 100  # passages that the linked retriever is asked for, at least


class LinkedRetriever(IndexRetriever):
    """Another retriever's best passages, and those that they lead to. Safe in several threads if the other one is.

    The base searches the passages between which the links are, or some of them. BM25 over these, ``words``, tells what
    of a question a passage leaves open. A choice of one's own is kept in a file beside the links.
    """

    def __init__(
        self, base: Retriever, words: BM25Retriever, links: Links, choice: Choice, choice_file: Path | None = None
    ) -> None:
        rule = f"linked 3 {base.fingerprint} {words.fingerprint} {choice.fingerprint}"
        super().__init__(words.passages, hashlib.sha256(rule.encode()).hexdigest()[:16])
        self.name, self.remote, self.similarity = f"linked {base.name}", base.remote, base.similarity
        self.folder = base.folder
        self.base, self.words, self.links, self.choice, self.choice_file = base, words, links, choice, choice_file

    def over(self, base: Retriever) -> LinkedRetriever:
        """Return the same links and choice over another retriever of these passages."""
        return LinkedRetriever(base, self.words, self.links, self.choice, self.choice_file)

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first; each says which better one it is linked from."""
        return [self._with_sources(passages) for passages in super().batch(queries, k)]

    def asked(self, queries: Sequence[str], k: int = 1) -> list[tuple[QuestionTerms, Array]]:
        """Return what each query asks for, and the positions of what the linked retriever finds, best first."""
        asked = []
        for query, found in zip(queries, self.base.batch(list(queries), max(k, _FOUND)), strict=True):
            positions = self.links.positions([one.id for one in found])
            if (positions < 0).any():
                raise IndexRefused(
                    f"{self.base.name} found the passage {found[int(positions.argmin())].id!r}, which the links do not "
                    "know: they are older than its passages, or of others. Make them again: questree index --links."
                )
            asked.append((QuestionTerms(query, self.words, self.links), positions))
        return asked

    def _search(self, queries: Sequence[str], k: int) -> list[Hits]:
        found = [self.choice.search(question, ranking) for question, ranking in self.asked(queries, k)]
        return [list(zip(places[:k].tolist(), scores[:k].tolist(), strict=True)) for places, scores in found]

    def _with_sources(self, passages: list[Passage]) -> list[Passage]:
        """Return the passages, each with the title of the first better one that names its title or that it names."""
        positions = self.links.positions([one.id for one in passages])
        bears = self.links.title_of[positions].tolist()
        names = set(zip(*(numbers.tolist() for numbers in self.links.links.of(positions)), strict=True))
        told = []
        for place, passage in enumerate(passages):
            better = (rank for rank in range(place) if {(rank, bears[place]), (place, bears[rank])} & names)
            source = next(filter(None, (passages[rank].title for rank in better)), "")
            told.append(passage.model_copy(update={"linked_from": source}))
        return told


def _write(order: Order) -> WrittenIndex:
    written = BM25.write(order)
    words = BM25Retriever.load(order.folder, order.passages, "", BM25Settings(**written.settings))
    before = Links.load(order.before, len(PassageStore(order.before))) if order.before else None
    Links.of_passages(words, order.report, before).save(order.folder)
    return written


def _load(folder: Path, manifest: IndexManifest, passages: PassageStore) -> LinkedRetriever:
    words = BM25Retriever.load(folder, passages, manifest.fingerprint, BM25.stored(manifest))
    own = folder.parent.with_name(f"{folder.parent.name}.choice.json")  # beside the index, not in a version of it
    choice = Choice.load(own) if own.exists() else Choice.load()
    return LinkedRetriever(words, words, Links.load(folder, len(passages)), choice, own)


_WHAT = "BM25, and the passages that its best ones lead to by the names in them; needs no model"
LINKED = IndexKind(KIND, _WHAT, _write, _load, settings=BM25.settings)


def links_folder(index: Path) -> Path:
    """Return where the links of an index are kept; those of an index of kind ``linked`` are in itself."""
    return index if read_manifest(index).kind == KIND else index.with_name(f"{index.name}.links")


def up_to_date(index: Path) -> bool:
    """Return whether an index has links, and of the passages that it holds now."""
    links = links_folder(index)
    return links.exists() and read_manifest(links).corpus.sha256 == read_manifest(index).corpus.sha256


def make_links(index: Path, report: Report = lambda _: None) -> Path:
    """Make the links of an index, or add what its further passages bring; return their folder."""
    links = links_folder(index)
    if up_to_date(index):  # looked at first: a lock cannot be written where an index is mounted read-only
        return links
    with in_turn(links.with_name(f".{links.name}.in-turn"), f"making the links of {index}"):
        if up_to_date(index):
            return links
        passages = PassageStore(index / read_manifest(index).version)
        of = read_manifest(links).corpus if links.exists() else None
        if of and corpus_hash(islice(passages, of.passages)) == of.sha256:
            return add_to_index(islice(passages, of.passages, None), links, progress=report)
        return build_index(passages, links, kind=KIND, overwrite=links.exists(), progress=report)


def linked(base: Retriever, indexes: Sequence[Path], links: Path | None = None) -> LinkedRetriever:
    """Return a retriever linked by an index of kind ``linked``, or by the links of the first of its indexes here."""
    if isinstance(base, LinkedRetriever):
        return base
    if not links and not indexes:
        raise QuestreeError(
            f"{base.name} has no folder on this machine beside which its links could be. Make an index of its passages "
            "(questree index CORPUS --kind linked --out LINKS) and name it: linked:ADDRESS@LINKS. "
            "Or serve it linked: questree serve-retriever linked:INDEX."
        )
    if not links and not up_to_date(indexes[0]):
        logger.warning("Making the links of %s, once (questree index --links makes them beforehand).", indexes[0])
    found = load_index(links or make_links(indexes[0]))
    if not isinstance(found, LinkedRetriever):
        raise IndexRefused(f"{links} holds no links: it is of kind {found.name}. Make one with --kind {KIND}.")
    return found.over(base)
