"""Links between the passages of a corpus: which titles a passage names, and which names it shares with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import IndexRefused
from ...common.text import words_in
from ..bm25 import BM25Retriever, stop_words, tokenized
from ..indexes.index_kind import BuildProgress, Report
from ..lists import Array, Lists, place_among_equals, places_in
from .names import HEAD, called, documents_of, marks_of, named_titles, names_in, title_hash, title_words, word_hash

FOLDER = "links"
JOINED = 2_000  # passages that a name joins, and that a title is borne by or named in: more would slow a search
NAMED = 64  # titles, and names, of one passage that count: planted passages that name a thousand gain nothing by it
_COMMON = 0.01  # of the passages: a title that more of them name is a word like others
_TOGETHER = 2_000


@dataclass(frozen=True)
class Links:
    """The links of a corpus, as arrays. A passage is a position in the corpus; titles and names are numbered."""

    titles: Array  # (titles,) their sorted hashes
    title_of: Array  # (passages,) the title that a passage bears; -1 for none
    heads: Lists  # of a passage, its title's words
    bearers: Lists  # of a title, the passages that bear it
    links: Lists  # of a passage, the titles that its text names
    mentions: Lists  # of a title, the passages whose texts name it
    names: Lists  # of a passage, the names that it shares with others, the rarest first
    named: Lists  # of a name, the passages that hold it
    ids: Array  # (passages,) sorted hashes of their ids
    places: Array  # (passages,) the positions of those passages
    read_titles: Lists  # of a passage, the hashes of all titles that were read in it; kept for when others are added
    read_names: Lists  # likewise of names

    @classmethod
    def of_passages(cls, words: BM25Retriever, report: Report = lambda _: None, before: Links | None = None) -> Links:
        """Return the links of the passages that BM25 is over, which are read twice; 100,000 take half a minute.

        Where links of the first of them are given, only those of these are read again that may name a new title.
        """
        passages, count = words.passages, len(words.passages)
        each = map(passages.__getitem__, range(count))
        known = ((*(title_hash(called(one, bare)) for bare in (False, True)), word_hash(one.id)) for one in each)
        given, hashes, ids = np.fromiter(known, np.dtype((np.uint64, 3)), count).T
        bare, first = not given.any(), given[: len(before.title_of) if before else 0]
        before, hashes = before if first.any() != bare else None, hashes if bare else given
        titles, order = np.unique(hashes[hashes > 0]), np.argsort(ids, kind="stable")
        title_of, again = places_in(titles, hashes).astype(np.int32), _to_read(before, words)
        read = zip(*_read(words, again, titles, bare, report), strict=True)
        headed, heads, sources, targets, holders, names = map(np.concatenate, read)
        sources, targets = _distinct(sources, targets, title_of)
        read_titles = _replaced(before.read_titles if before else None, again, sources, titles[targets], count)
        read_names = _replaced(before.read_names if before else None, again, holders, names, count)
        sources, hashes = read_titles.pairs()
        targets = places_in(titles, hashes)
        kept = np.bincount(targets, minlength=len(titles))[targets] <= max(20, _COMMON * count)
        holders, held = _shared(*read_names.pairs())
        bearing = np.flatnonzero(title_of >= 0)
        return cls(
            titles,
            title_of,
            heads=_replaced(before.heads if before else None, again, headed, heads, count),
            bearers=Lists.of_pairs(title_of[bearing], bearing, len(titles), JOINED),
            links=Lists.of_pairs(sources[kept], targets[kept], count),
            mentions=Lists.of_pairs(targets[kept], sources[kept], len(titles), JOINED),
            names=Lists.of_pairs(holders, held, count),
            named=Lists.of_pairs(held, holders, int(held.max(initial=-1)) + 1),
            ids=ids[order],
            places=order.astype(np.int32),
            read_titles=read_titles,
            read_names=read_names,
        )

    def save(self, folder: Path) -> None:
        """Write the arrays into a folder, each as a file of numpy's."""
        (folder / FOLDER).mkdir(exist_ok=True)
        for name, value in vars(self).items():
            if isinstance(value, Lists):
                np.save(folder / FOLDER / f"{name}.starts.npy", value.starts, allow_pickle=False)
                value = value.items
            np.save(folder / FOLDER / f"{name}.npy", value, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, passages: int) -> Links:
        """Map the arrays that `save` wrote for so many passages; none is read whole."""
        try:
            files = (folder / FOLDER).glob("*.npy")
            found: dict[str, Any] = {file.stem: np.load(file, "r", allow_pickle=False) for file in files}
            for name in (one.name for one in fields(cls) if one.type == "Lists"):
                found[name] = Lists(found.pop(f"{name}.starts"), found[name])
            links = cls(**found)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise IndexRefused(
                f"{folder} is damaged, or of an older questree: its links cannot be read ({problem}). Build it again."
            ) from problem
        if {len(links.title_of), len(links.links), len(links.names), len(links.ids)} != {passages}:
            raise IndexRefused(f"{folder} is damaged: its links are not of its {passages} passages.")
        return links

    def positions(self, ids: Sequence[str]) -> Array:
        """Return where the passages of these ids stand; -1 for one that is not in the corpus."""
        at = places_in(self.ids, np.array([word_hash(id) for id in ids], np.uint64))
        return np.where(at < 0, -1, self.places[at]).astype(np.int64)


def _to_read(before: Links | None, words: BM25Retriever) -> Array:
    """Return which passages are read: the further ones, and of the first those with all words of a further title."""
    if before is None:
        return np.arange(len(words.passages))
    found = [np.arange(len(before.title_of), len(words.passages))]
    for title in {called(words.passages[place], True) for place in found[0].tolist()}:
        told = np.array([title_hash(title)], np.uint64)
        if told[0] and places_in(before.titles, told)[0] < 0:
            lists = sorted((places for places, _ in words.postings(" ".join(title_words(title))).values()), key=len)
            found.append(reduce(lambda some, more: some[places_in(more, some) >= 0], lists))
    return np.unique(np.concatenate(found)).astype(np.int64)


def _read(words: BM25Retriever, at: Array, titles: Array, bare: bool, report: Report) -> Iterator[tuple[Array, ...]]:
    """Yield for some passages at a time which one has which word in its title, names which title, holds which name."""
    marks = marks_of(titles)
    for first in range(0, max(len(at), 1), _TOGETHER):
        some = at[first : first + _TOGETHER]
        those = [words.passages[place] for place in some.tolist()]
        titled = tokenized([" ".join(title_words(called(one, bare))) for one in those], words.settings)
        heads = [[word for word in dict.fromkeys(found) if word not in stop_words()] for found in titled]
        names = [names_in(f"{one.title}. {one.text}") | documents_of(one) for one in those]
        source, target = named_titles([words_in(one.text) for one in those], titles, marks)
        headed, holders = (np.repeat(some, list(map(len, lists))) for lists in (heads, names))
        hashes = np.array([word_hash(word) & HEAD for word in chain.from_iterable(heads)], np.int64)
        yield headed, hashes, some[source], target, holders, np.fromiter(chain.from_iterable(names), np.uint64)
        report(BuildProgress("linking", first + len(some), len(at)))


def _replaced(before: Lists | None, again: Array, keys: Array, items: Array, count: int) -> Lists:
    """Return lists of so many keys: what was read, and of keys that were not read again what they had before."""
    if before:
        old, item = before.pairs()
        kept = ~np.isin(old, again)
        keys, items = np.concatenate([old[kept], keys]), np.concatenate([item[kept], items])
    return Lists.of_pairs(keys, items, count)


def _distinct(sources: Array, targets: Array, title_of: Array) -> tuple[Array, Array]:
    """Return the links without repetitions, links to themselves, and those beyond the first so many of a passage."""
    _, first = np.unique(sources * (targets.max(initial=0) + 1) + targets, return_index=True)
    first = np.sort(first[targets[first] != title_of[sources[first]]])
    few = first[place_among_equals(sources[first]) < NAMED]
    return sources[few], targets[few]


def _shared(holders: Array, hashes: Array) -> tuple[Array, Array]:
    """Return the pairs of passage and name, numbered, of names that several passages hold; a passage's rarest first."""
    _, name, often = np.unique(hashes, return_inverse=True, return_counts=True)
    useful = (often >= 2) & (often <= JOINED)
    holders, name = holders[useful[name]], name[useful[name]]
    order = np.lexsort((name, often[name], holders))
    few = order[place_among_equals(holders[order]) < NAMED]
    return holders[few], (np.cumsum(useful) - 1)[name[few]]
