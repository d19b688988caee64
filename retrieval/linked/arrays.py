"""Lists of numbers by position, all in one array, and where each begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Lists:
    """One list for each key.

    Attributes:
        starts: (keys + 1,) where each list begins in the items.
        items: (items,) int32.
    """

    starts: Array
    items: Array

    @classmethod
    def of_pairs(cls, keys: Array, items: Array, count: int) -> Lists:
        """Return the lists of so many keys from pairs; those of one key stay in their order."""
        import numpy as np

        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(keys, minlength=count), out=starts[1:])
        return cls(starts, items[np.argsort(keys, kind="stable")].astype(np.int32))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def lengths(self, keys: Array) -> Array:
        """Return (keys,) how long their lists are."""
        lengths: Array = self.starts[keys + 1] - self.starts[keys]
        return lengths

    def of(self, keys: Array, most: int | None = None) -> tuple[Array, Array]:
        """Return the items of some keys: (items,) the place of each one's key among those given, and (items,) them.

        Args:
            keys: (keys,).
            most: items of a list at most, from its beginning.
        """
        import numpy as np

        lengths = self.lengths(keys) if most is None else np.minimum(self.lengths(keys), most)
        key_of = np.repeat(np.arange(len(keys)), lengths)
        within = np.arange(len(key_of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return key_of, np.asarray(self.items[self.starts[keys][key_of] + within], np.int64)
