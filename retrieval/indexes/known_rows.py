"""Rows of passages that stay the same while others about them come and go: an index gives them to its next version.

What an encoder makes of a text depends, in the last bits, on the texts that it is given with it. So passages are
encoded in groups that depend on nothing else than their texts, wherever in a corpus they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

from .chunks import Encoded, chunk_count, chunk_hash, read_record, read_rows, texts_of
from .contents import PassageStore

_GROUP = 32  # passages, in the mean


def groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts in their order, in groups; one ends behind a text of certain hashes."""
    group: list[str] = []
    for text in texts:
        group.append(text)
        if crc32(text.encode()) % _GROUP == 0:
            yield group
            group = []
    if group:
        yield group


class KnownRows:
    """The rows of the groups of an index.

    Args:
        version: the folder of the index's version; None if there is none.
        name: of the folder of its chunks.
        identity: of the encoder, as for `encode_corpus`; of another one nothing is known.
    """

    def __init__(self, version: Path | None, name: str, identity: str) -> None:
        self._identity = identity
        self._folder = Path() if version is None else version / name
        self._known: dict[str, tuple[int, int, list[int]]] = {}
        if version is None or not self._folder.is_dir():
            return
        passages = PassageStore(version)
        for number in range(chunk_count(len(passages))):
            record, texts = read_record(self._folder, number), texts_of(passages, number)
            if record.filled or record.made_from != chunk_hash(texts, identity):
                continue
            first, lengths = 0, iter(record.lengths)
            for group in groups(texts):
                of_group = [next(lengths) for _ in group]
                self._known[chunk_hash(group, identity)] = number, first, of_group
                first += sum(of_group)

    def rows(self, encode: Callable[[list[str]], Encoded], texts: list[str]) -> Encoded:
        """Return the rows of the texts of a chunk; only groups that are not known are encoded."""
        found = [self._of(group) or encode(group) for group in groups(texts)]
        lengths, filled, rows = zip(*found, strict=True)
        return [one for some in lengths for one in some], sum(filled), np.concatenate(rows)

    def _of(self, group: list[str]) -> Encoded | None:
        if (known := self._known.get(chunk_hash(group, self._identity))) is None:
            return None
        number, first, lengths = known
        return lengths, 0, read_rows(self._folder, number)[first : first + sum(lengths)]
