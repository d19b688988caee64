"""Links between the passages of a corpus: which titles a passage names, and which names it shares with others."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import IndexRefused
from ...common.text import words_in
from ..bm25 import BM25Retriever
from ..contracts import Passages
from ..indexes.index_kind import BuildProgress, Report
from ..lists import Array, Lists, place_among_equals, places_in
from .names import head_hash, marks_of, named_titles, names_in, stop_words, title_hash, title_words, word_hash

FOLDER = "links"
JOINED = 2_000
"""Passages that a name joins, and that a title is borne by or named in, at most: more would slow a search."""
NAMED = 64
"""Titles, and names, of one passage that count: whoever plants a passage that names a thousand gains nothing by it."""
_COMMON = 0.01
"""Of the passages: a title that more of them name is a word like others."""
_TOGETHER = 2_000


@dataclass(frozen=True)
class Links:
    """The links of a corpus, as arrays. A passage is a position in the corpus; titles and names are numbered.

    Attributes:
        titles: (titles,) their sorted hashes.
        title_of: (passages,) the title that a passage bears; -1 for none.
        heads: of a passage, its title's words, by 31 bits of their hashes.
        bearers: of a title, the passages that bear it.
        links: of a passage, the titles that its text names.
        mentions: of a title, the passages whose texts name it.
        names: of a passage, the names that it shares with others, the rarest first.
        named: of a name, the passages that hold it.
        ids: (passages,) sorted hashes of their ids.
        places: (passages,) the positions of those passages.
        read_titles, read_names: of a passage, the hashes of all titles and names that were read in it. All the rest is
            made of them, anew when passages are added.
    """

    titles: Array
    title_of: Array
    heads: Lists
    bearers: Lists
    links: Lists
    mentions: Lists
    names: Lists
    named: Lists
    ids: Array
    places: Array
    read_titles: Lists
    read_names: Lists

    @classmethod
    def of_passages(cls, words: BM25Retriever, report: Report = lambda _: None, before: Links | None = None) -> Links:
        """Return the links of the passages of an index, which are read twice; 100,000 of Wikipedia take half a minute.

        Args:
            words: BM25 over the passages.
            report: called with how far it is.
            before: links of the first of them, of which only those are read again that may name a new title.
        """
        count, known = len(words.passages), len(before.title_of) if before else 0
        again = np.arange(known, count)
        hashes, ids, head_of, heads = _read_titles(words.passages, known)
        if before:
            hashes = np.concatenate([np.append(np.uint64(0), before.titles)[before.title_of + 1], hashes])
            ids = np.concatenate([before.ids[np.argsort(before.places)], ids])
            again = np.concatenate([_may_name_new_titles(before, words), again])
        titles = np.unique(hashes[hashes > 0])
        title_of = places_in(titles, hashes).astype(np.int32)
        parts = zip(*_read(words.passages, again, titles, report), strict=True)
        sources, targets, holders, names = map(np.concatenate, parts)
        sources, targets = _distinct(sources, targets, title_of)
        read_titles = _replaced(before.read_titles if before else None, again, sources, titles[targets], count)
        read_names = _replaced(before.read_names if before else None, again, holders, names, count)
        sources, hashes = read_titles.pairs()
        targets = places_in(titles, hashes)
        kept = np.bincount(targets, minlength=len(titles))[targets] <= max(20, _COMMON * count)
        holders, held = _shared(*read_names.pairs())
        bearing, order = np.flatnonzero(title_of >= 0), np.argsort(ids, kind="stable")
        return cls(
            titles,
            title_of,
            heads=_replaced(before.heads if before else None, again[:0], head_of, heads, count),
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
        """Map the arrays that `save` wrote; none is read whole.

        Raises:
            IndexRefused: if they are not there, or not of so many passages.
        """
        try:
            found: dict[str, Any] = {
                file.stem: np.load(file, "r", allow_pickle=False) for file in (folder / FOLDER).glob("*.npy")
            }
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


def _read_titles(passages: Passages, first: int) -> tuple[Array, Array, Array, Array]:
    """Return from the first on: what titles and ids are known by; and which passage's title has which word."""
    hashes, ids, owners, heads = array("Q"), array("Q"), array("q"), array("q")
    for place in range(first, len(passages)):
        passage = passages[place]
        hashes.append(title_hash(passage.title))
        ids.append(word_hash(passage.id))
        words = [head_hash(word) for word in dict.fromkeys(title_words(passage.title)) if word not in stop_words()]
        owners.extend([place] * len(words))
        heads.extend(words)
    return np.array(hashes, np.uint64), np.array(ids, np.uint64), np.array(owners, np.int64), np.array(heads, np.int64)


def _read(passages: Passages, places: Array, titles: Array, report: Report) -> Iterator[tuple[Array, ...]]:
    """Yield for some places at a time: which passage names which title; and which one holds which name, by its hash."""
    marks = marks_of(titles)
    for first in range(0, max(len(places), 1), _TOGETHER):
        some = places[first : first + _TOGETHER]
        those = [passages[place] for place in some.tolist()]
        source, target = named_titles([words_in(one.text) for one in those], titles, marks)
        names = [names_in(f"{one.title}. {one.text}") for one in those]
        holders = np.repeat(some, list(map(len, names)))
        yield some[source], target, holders, np.fromiter(chain.from_iterable(names), np.uint64)
        report(BuildProgress("linking", first + len(some), len(places)))


def _may_name_new_titles(before: Links, words: BM25Retriever) -> Array:
    """Return which of the first passages hold all words of a title that only further ones bear."""
    known, found = len(before.title_of), [np.zeros(0, np.int64)]
    for title in {words.passages[place].title for place in range(known, len(words.passages))}:
        told = np.array([title_hash(title)], np.uint64)
        if told[0] and places_in(before.titles, told)[0] < 0:
            lists = sorted((places for places, _ in words.postings(" ".join(title_words(title))).values()), key=len)
            found.append(reduce(lambda some, more: some[places_in(more, some) >= 0], lists))
    every = np.unique(np.concatenate(found))
    return every[every < known]


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
    kept = np.flatnonzero(useful[name])
    holders, name = holders[kept], name[kept]
    order = np.lexsort((name, often[name], holders))
    few = order[place_among_equals(holders[order]) < NAMED]
    return holders[few], (np.cumsum(useful) - 1)[name[few]]
