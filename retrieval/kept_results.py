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

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, or None if it is not kept."""
        return self._held.get(key)

    def all_of(
        self, keys: Sequence[Key], make: Callable[[list[Key]], Iterable[Value]], size: Callable[[Key, Value], int]
    ) -> list[Value]:
        """Return the value of each key; those that are not kept are made and kept.

        Args:
            make: gives the values of keys, in their order; it is called once, and not without a key.
            size: gives the bytes of a key and its value, about.
        """
        known = {key: value for key in keys if (value := self.get(key)) is not None}
        new = [key for key in dict.fromkeys(keys) if key not in known]
        for key, value in zip(new, make(new) if new else (), strict=True):
            known[key] = value
            self.keep(key, value, size(key, value))
        return [known[key] for key in keys]

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep a value.

        Args:
            value: to be kept.
            size: the bytes of both, about.
        """
        size += _ENTRY
        with self._lock:
            if key in self._held or size > _MOST:
                return
            if self._bytes + size > _MOST:
                self._held.clear()
                self._bytes = 0
            self._held[key] = value
            self._bytes += size
