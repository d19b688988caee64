"""Links between the passages of a corpus: which titles a passage names, and which names it shares with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import IndexRefused
from ...common.text import words_in
from ..contracts import Passages
from ..indexes.index_kind import BuildProgress, Report
from ..lists import Array, Lists, place_among_equals
from ..passage import Passage
from .names import head_hash, marks_of, named_titles, names_in, stop_words, title_hash, title_words, word_hash

FOLDER = "links"
JOINED = 2_000
"""Passages that a name joins, and that a title is borne by or named in, at most: more would slow a search."""
NAMED = 64
"""Titles, and names, of one passage that count: whoever plants a passage that names a thousand gains nothing by it."""
_COMMON = 0.01
"""Of the passages: a title that more of them name is a word like others."""
_TOGETHER = 2_000
_LISTS = ("bearers", "links", "mentions", "names", "named", "heads")


@dataclass(frozen=True)
class Links:
    """The links of a corpus, as arrays. A passage is a position in the corpus; titles and names are numbered.

    Attributes:
        titles: (titles,) their sorted hashes.
        title_of: (passages,) the title that a passage bears; -1 for none.
        bearers: of a title, the passages that bear it.
        links: of a passage, the titles that its text names.
        mentions: of a title, the passages whose texts name it.
        names: of a passage, the names that it shares with others, the rarest first.
        named: of a name, the passages that hold it.
        heads: of a passage, its title's words, by 31 bits of their hashes.
        ids: (passages,) hashes of the passages' ids, sorted.
        places: (passages,) the positions of those passages.
    """

    titles: Array
    title_of: Array
    bearers: Lists
    links: Lists
    mentions: Lists
    names: Lists
    named: Lists
    heads: Lists
    ids: Array
    places: Array

    @classmethod
    def of_passages(cls, passages: Passages, report: Report = lambda _: None) -> Links:
        """Return the links of a corpus, which is read twice; 100,000 passages of Wikipedia take half a minute."""
        count = len(passages)
        hashes, ids, head_of, heads = map(np.concatenate, zip(*_read_titles(passages, report), strict=True))
        titles = np.unique(hashes[hashes > 0])
        title_of = np.where(hashes > 0, np.searchsorted(titles, hashes), -1).astype(np.int32)
        bearing = np.flatnonzero(title_of >= 0)
        found = map(np.concatenate, zip(*_read_texts(passages, titles, report), strict=True))
        sources, targets, holders, hashes = found
        sources, targets = _distinct(sources, targets, title_of)
        often = np.bincount(targets, minlength=len(titles))
        kept = often[targets] <= max(20, _COMMON * count)
        sources, targets = sources[kept], targets[kept]
        holders, held = _shared(holders, hashes)
        order = np.argsort(ids, kind="stable")
        return cls(
            titles,
            title_of,
            bearers=Lists.of_pairs(title_of[bearing], bearing, len(titles), JOINED),
            links=Lists.of_pairs(sources, targets, count),
            mentions=Lists.of_pairs(targets, sources, len(titles), JOINED),
            names=Lists.of_pairs(holders, held, count),
            named=Lists.of_pairs(held, holders, int(held.max(initial=-1)) + 1),
            heads=Lists.of_pairs(head_of, heads, count),
            ids=ids[order],
            places=order.astype(np.int32),
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
            starts = {name: found.pop(f"{name}.starts") for name in _LISTS}
            links = cls(**found | {name: Lists(first, found[name]) for name, first in starts.items()})
        except (OSError, ValueError, TypeError, KeyError) as problem:
            raise IndexRefused(f"{folder} is damaged: its links cannot be read ({problem}).") from problem
        if {len(links.title_of), len(links.links), len(links.names), len(links.ids)} != {passages}:
            raise IndexRefused(f"{folder} is damaged: its links are not of its {passages} passages.")
        return links

    def positions(self, ids: Sequence[str]) -> Array:
        """Return where the passages of these ids stand; -1 for one that is not in the corpus."""
        wanted = np.array([word_hash(id) for id in ids], np.uint64)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[at] == wanted, self.places[at], -1).astype(np.int64)

    def titles_in(self, text: str) -> Array:
        """Return the titles that a text names."""
        return np.asarray(np.unique(named_titles([words_in(text)], self.titles)[1]))


def _read(passages: Passages, stage: str, report: Report) -> Iterator[tuple[int, list[Passage]]]:
    """Yield the passages, some at a time, with the position of the first."""
    for first in range(0, len(passages), _TOGETHER):
        end = min(first + _TOGETHER, len(passages))
        yield first, [passages[place] for place in range(first, end)]
        report(BuildProgress(stage, end, len(passages)))


def _read_titles(passages: Passages, report: Report) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield for some passages at a time: what titles and ids are known by; and which passage's title has which word."""
    for first, some in _read(passages, "reading titles", report):
        words = [dict.fromkeys(word for word in title_words(one.title) if word not in stop_words()) for one in some]
        yield (
            np.array([title_hash(one.title) for one in some], np.uint64),
            np.array([word_hash(one.id) for one in some], np.uint64),
            np.repeat(np.arange(first, first + len(some)), list(map(len, words))),
            np.fromiter((head_hash(word) for of_title in words for word in of_title), np.int64),
        )


def _read_texts(passages: Passages, titles: Array, report: Report) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield for some passages at a time: which one names which title, and which one holds which name, by its hash."""
    marks = marks_of(titles)
    for first, some in _read(passages, "linking", report):
        source, target = named_titles([words_in(one.text) for one in some], titles, marks)
        names = [names_in(f"{one.title}. {one.text}") for one in some]
        holder = np.repeat(np.arange(first, first + len(some)), list(map(len, names)))
        yield source + first, target, holder, np.fromiter((name for held in names for name in held), np.uint64)


def _distinct(sources: Array, targets: Array, title_of: Array) -> tuple[Array, Array]:
    """Return the links without repetitions, links to themselves, and those beyond the first so many of a passage."""
    _, first = np.unique(sources * (targets.max(initial=0) + 1) + targets, return_index=True)
    first = np.sort(first[targets[first] != title_of[sources[first]]])
    sources, targets = sources[first], targets[first]
    few = place_among_equals(sources) < NAMED
    return sources[few], targets[few]


def _shared(holders: Array, hashes: Array) -> tuple[Array, Array]:
    """Return the pairs of passage and name, numbered, of names that several passages hold; a passage's rarest first."""
    _, name, often = np.unique(hashes, return_inverse=True, return_counts=True)
    useful = (often >= 2) & (often <= JOINED)
    kept = np.flatnonzero(useful[name])
    holders, name = holders[kept], name[kept]
    order = np.lexsort((name, often[name], holders))
    holders, name = holders[order], name[order]
    few = place_among_equals(holders) < NAMED
    return holders[few], (np.cumsum(useful) - 1)[name[few]]
