"""Arrays that stay on disk, read a part at a time.

Unlike a mapped file, one that is cut short while it is in use gives an error: it does not end the process (SIGBUS), and
its lost end is not taken for zeros.
"""

from __future__ import annotations

import os
import threading
import weakref
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import IndexRefused

if TYPE_CHECKING:
    import numpy as np

_LOCK = threading.Lock()
"""Of files that have to be read from a position of their own, as on Windows."""


class StoredArray:
    """An array in a file, of which slices along its first axis are read; safe in several threads and after a fork.

    Args:
        path: of the file.
        dtype: of its numbers.
        shape: of all of it.
        offset: of its first byte.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is too short.
    """

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> None:
        import numpy as np

        self.shape, self._path, self._offset, self._dtype = shape, path, offset, np.dtype(dtype)
        self._row = prod(shape[1:]) * self._dtype.itemsize
        file = path.open("rb", buffering=0)
        weakref.finalize(self, file.close)
        self._file = file.fileno()
        size = os.fstat(self._file).st_size
        if size < offset + len(self) * self._row:
            raise ValueError(f"it has {size} bytes of {offset + len(self) * self._row}")

    @classmethod
    def of_npy(cls, path: Path) -> StoredArray:
        """Return the array in a file of numpy's, whose head alone is read.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if it is no such file, or too short.
        """
        import numpy as np

        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if not (isinstance(mapped, np.memmap) and mapped.flags.c_contiguous):
            raise ValueError("its numbers do not lie in order")
        return cls(path, mapped.dtype, mapped.shape, int(mapped.offset))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> np.ndarray[Any, Any]:
        """Return a slice, read now.

        Raises:
            IndexRefused: if the file is shorter than it was.
        """
        import numpy as np

        first, end, _ = part.indices(len(self))
        found = np.empty((max(0, end - first), *self.shape[1:]), self._dtype)
        if found.nbytes:
            self._fill(found.data.cast("B"), self._offset + first * self._row)
        return found

    def _fill(self, room: memoryview, position: int) -> None:
        while room:
            try:
                count = _read(self._file, room, position)
            except OSError as problem:
                raise IndexRefused(f"{self._path} cannot be read any more: {problem.strerror}.") from problem
            if not count:
                raise IndexRefused(f"{self._path} is damaged: it was cut short while it was in use; build it again.")
            room, position = room[count:], position + count


def _read(file: int, room: memoryview, position: int) -> int:
    """Read bytes from a position; return how many came."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [room], position)
    with _LOCK:
        os.lseek(file, position, os.SEEK_SET)
        found = os.read(file, len(room))
    room[: len(found)] = found
    return len(found)
