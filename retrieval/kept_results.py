"""What was computed before, kept in a bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_MOST = 128 << 20  # bytes, about
_ENTRY = 200  # bytes of an entry beside what it holds


class Kept(Generic[Key, Value]):
    """Values by their keys, until they are too many bytes together; then all are dropped. Safe in several threads."""

    def __init__(self) -> None:
        self._held: dict[Key, Value] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def all_of(
        self, keys: Sequence[Key], make: Callable[[list[Key]], Iterable[Value]], size: Callable[[Key, Value], int]
    ) -> list[Value]:
        """Return the value of each key; those that are not kept are made and kept.

        Args:
            make: gives the values of keys, in their order; it is called once, and not without a key.
            size: gives the bytes of a key and its value, about.
        """
        held = self._held  # which is never emptied, but replaced
        known = {key: held[key] for key in keys if key in held}
        new = [key for key in dict.fromkeys(keys) if key not in known]
        known.update(zip(new, make(new) if new else (), strict=True))
        with self._lock:
            for key in new:
                taken = size(key, known[key]) + _ENTRY
                if key in self._held or taken > _MOST:
                    continue
                if self._bytes + taken > _MOST:
                    self._held, self._bytes = {}, 0
                self._held[key] = known[key]
                self._bytes += taken
        return [known[key] for key in keys]
