"""Lists of numbers by position, all in one array, and where each begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Lists:
    """One list for each key.

    Attributes:
        starts: (keys + 1,) where each list begins in the items.
        items: (items,) int32; uint64 for hashes.
    """

    starts: Array
    items: Array

    @classmethod
    def of_pairs(cls, keys: Array, items: Array, count: int, longest: int | None = None) -> Lists:
        """Return the lists of so many keys from pairs; those of one key stay in their order.

        Args:
            keys, items: (pairs,).
            longest: lists of more items are left empty.
        """
        lengths = np.bincount(keys, minlength=count)
        if longest is not None:
            kept = lengths[keys] <= longest
            keys, items, lengths = keys[kept], items[kept], np.where(lengths <= longest, lengths, 0)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return cls(
            starts, items[np.argsort(keys, kind="stable")].astype(np.uint64 if items.dtype == np.uint64 else np.int32)
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def lengths(self, keys: Array) -> Array:
        """Return (keys,) how long their lists are."""
        lengths: Array = self.starts[keys + 1] - self.starts[keys]
        return lengths

    def pairs(self) -> tuple[Array, Array]:
        """Return (items,) the key of each item, and (items,) the items."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts)), self.items

    def of(self, keys: Array) -> tuple[Array, Array]:
        """Return the items of (keys,): (items,) the place of each one's key among those given, and (items,) them."""
        lengths = self.lengths(keys)
        key_of = np.repeat(np.arange(len(keys)), lengths)
        within = np.arange(len(key_of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return key_of, np.asarray(self.items[self.starts[keys][key_of] + within], np.int64)


def place_among_equals(keys: Array) -> Array:
    """Return (keys,) how many equal ones stand before each; the keys are sorted."""
    return np.arange(len(keys)) - np.searchsorted(keys, keys)


def places_in(ordered: Array, wanted: Array) -> Array:
    """Return (wanted,) where each stands in what is ordered; -1 where it does not."""
    if not len(ordered):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[at] == wanted, at, -1)
