"""What was computed before, kept in a bounded memory."""

from __future__ import annotations

import threading
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

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep a value.

        Args:
            key: by which it is found.
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
