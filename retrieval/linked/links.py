"""Links between the passages of a corpus: which titles a passage names, and which names it shares with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import IndexRefused
from ...common.text import words_in
from ..contracts import Passages
from ..indexes.index_kind import BuildProgress, Report
from .arrays import Lists
from .names import named_titles, names_in, stop_words, title_hash, title_words, word_hash

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

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
        import numpy as np

        count = len(passages)
        hashes, ids = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        head_lists = []
        for first, some in _parts(passages):
            end = first + len(some)
            hashes[first:end] = [title_hash(one.title) for one in some]
            ids[first:end] = [word_hash(one.id) for one in some]
            head_lists += [_head(one.title) for one in some]
            report(BuildProgress("reading titles", end, count))
        titles = np.unique(hashes[hashes > 0])
        title_of = np.where(hashes > 0, np.searchsorted(titles, hashes), -1).astype(np.int32)
        bearing = np.flatnonzero(title_of >= 0)
        sources, targets, holders, held = _found(passages, titles, title_of, report)
        often = np.bincount(targets, minlength=len(titles))
        kept = often[targets] <= max(20, _COMMON * count)
        sources, targets = sources[kept], targets[kept]
        rare = often[targets] <= JOINED
        order = np.argsort(ids, kind="stable")
        return cls(
            titles,
            title_of,
            bearers=_up_to(JOINED, Lists.of_pairs(title_of[bearing], bearing, len(titles))),
            links=Lists.of_pairs(sources, targets, count),
            mentions=Lists.of_pairs(targets[rare], sources[rare], len(titles)),
            names=Lists.of_pairs(holders, held, count),
            named=Lists.of_pairs(held, holders, int(held.max(initial=-1)) + 1),
            heads=Lists.of_pairs(
                np.repeat(np.arange(count), [len(head) for head in head_lists]),
                np.fromiter((word for head in head_lists for word in head), np.int64),
                count,
            ),
            ids=ids[order],
            places=order.astype(np.int32),
        )

    def save(self, folder: Path) -> None:
        """Write the arrays into a folder, each as a file of numpy's."""
        import numpy as np

        (folder / FOLDER).mkdir(exist_ok=True)
        for name, array in self._arrays():
            np.save(folder / FOLDER / f"{name}.npy", array, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, passages: int) -> Links:
        """Map the arrays that `save` wrote; none is read whole.

        Raises:
            IndexRefused: if they are not there, or not of so many passages.
        """
        import numpy as np

        def array(name: str) -> Any:
            return np.load(folder / FOLDER / f"{name}.npy", mmap_mode="r", allow_pickle=False)

        try:
            parts: dict[str, Any] = {one.name: array(one.name) for one in fields(cls)}
            parts |= {
                one.name: Lists(array(f"{one.name}.starts"), parts[one.name])
                for one in fields(cls)
                if one.type == "Lists"
            }
            links = cls(**parts)
        except (OSError, ValueError) as problem:
            raise IndexRefused(f"{folder} is damaged: its links cannot be read ({problem}).") from problem
        if {len(links.title_of), len(links.links), len(links.names), len(links.ids)} != {passages}:
            raise IndexRefused(f"{folder} is damaged: its links are not of its {passages} passages.")
        return links

    def _arrays(self) -> Iterator[tuple[str, Array]]:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Lists):
                yield f"{one.name}.starts", value.starts
                value = value.items
            yield one.name, value

    def positions(self, ids: Sequence[str]) -> Array:
        """Return where the passages of these ids stand; -1 for one that is not in the corpus."""
        import numpy as np

        wanted = np.array([word_hash(id) for id in ids], np.uint64)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[at] == wanted, self.places[at], -1).astype(np.int64)

    def titles_in(self, text: str) -> Array:
        """Return the titles that a text names."""
        import numpy as np

        found: Array = np.unique(named_titles([words_in(text)], self.titles)[1])
        return found


def _parts(passages: Passages) -> Iterator[tuple[int, list[Any]]]:
    """Yield the passages, some at a time, with the position of the first."""
    for first in range(0, len(passages), _TOGETHER):
        yield first, [passages[place] for place in range(first, min(first + _TOGETHER, len(passages)))]


def _head(title: str) -> list[int]:
    """Return what the words of a title are known by."""
    return [head_hash(word) for word in dict.fromkeys(title_words(title)) if word not in stop_words()]


def head_hash(word: str) -> int:
    """Return 31 bits that stand for a word of a title."""
    return word_hash(word) & 0x7FFFFFFF


def _found(passages: Passages, titles: Array, title_of: Array, report: Report) -> tuple[Array, Array, Array, Array]:
    """Return which passage names which title, and which passage holds which of the names that 2 to 2,000 hold."""
    import numpy as np

    sources: list[Array] = [np.zeros(0, np.int64)]
    targets, holders, hashes = list(sources), list(sources), [np.zeros(0, np.uint64)]
    for first, some in _parts(passages):
        source, target = named_titles([words_in(one.text) for one in some], titles)
        sources.append(source + first)
        targets.append(target)
        for place, one in enumerate(some, first):
            names = np.fromiter(names_in(f"{one.title}. {one.text}"), np.uint64)
            hashes.append(names)
            holders.append(np.full(len(names), place))
        report(BuildProgress("linking", first + len(some), len(passages)))
    source, target = _first_of_each(np.concatenate(sources), np.concatenate(targets), title_of)
    return source, target, *_shared(np.concatenate(holders), np.concatenate(hashes))


def _first_of_each(sources: Array, targets: Array, title_of: Array) -> tuple[Array, Array]:
    """Return the links without repetitions, links to themselves, and those beyond the first so many of a passage."""
    import numpy as np

    _, first = np.unique(np.stack([sources, targets]), axis=1, return_index=True)
    first = np.sort(first[targets[first] != title_of[sources[first]]])
    sources, targets = sources[first], targets[first]
    within = np.arange(len(sources)) - np.searchsorted(sources, sources)
    return sources[within < NAMED], targets[within < NAMED]


def _shared(holders: Array, hashes: Array) -> tuple[Array, Array]:
    """Return the pairs of passage and name, numbered, of names that several passages hold; a passage's rarest first."""
    import numpy as np

    _, name, often = np.unique(hashes, return_inverse=True, return_counts=True)
    useful = (often >= 2) & (often <= JOINED)
    kept = np.flatnonzero(useful[name])
    holders, name = holders[kept], name[kept]
    order = np.lexsort((name, often[name], holders))
    holders, name = holders[order], name[order]
    within = np.arange(len(holders)) - np.searchsorted(holders, holders)
    few = within < NAMED
    return holders[few], (np.cumsum(useful) - 1)[name[few]]


def _up_to(most: int, lists: Lists) -> Lists:
    """Return the lists, without those that are longer."""
    import numpy as np

    keys = np.repeat(np.arange(len(lists)), np.diff(lists.starts))
    kept = np.diff(lists.starts)[keys] <= most
    return Lists.of_pairs(keys[kept], lists.items[kept], len(lists))
