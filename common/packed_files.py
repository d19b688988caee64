"""Compressed files, read within bounds: a few bytes can unpack to more than a disk holds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a file raises that is damaged, or unpacks to too much."""
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_RATIO = 200
"""A file's bytes for each of its packed ones, at most; text has 3 to 20."""
_LEAST = 4 << 20
"""Bytes that any file may unpack to."""


class Allowance:
    """How much a file may still unpack to, all its members together."""

    def __init__(self, path: Path) -> None:
        self._most = self._left = _LEAST + _RATIO * path.stat().st_size
        self._path = path

    def take(self, count: int) -> None:
        """Take so many unpacked bytes.

        Raises:
            OSError: if that is more than text unpacks to.
        """
        self._left -= count
        if self._left < 0:
            raise OSError(
                f"it unpacks to more than {self._most:,} bytes, over {_RATIO} times its size, which no text does; if "
                "you trust it, unpack it yourself"
            )


def open_unpacked(path: Path) -> BinaryIO:
    """Open a file for reading; ``.gz``, ``.bz2`` and ``.xz`` are unpacked as they are read.

    Raises:
        OSError: if it cannot be read; reading raises it too, if the file unpacks to more than text does.
    """
    opener = _OPENERS.get(path.suffix.lower())
    return path.open("rb") if opener is None else bounded(opener(path, "rb"), Allowance(path))


def bounded(unpacked: Any, allowance: Allowance) -> BinaryIO:
    """Return a reader of what is unpacked, whose bytes are taken from the allowance."""
    return cast("BinaryIO", io.BufferedReader(_Bounded(unpacked, allowance), 128 << 10))


def uncompressed(path: Path) -> Path:
    """Return the name without the suffix of a compression."""
    return path.with_suffix("") if path.suffix.lower() in _OPENERS else path


class _Bounded(io.RawIOBase):
    def __init__(self, unpacked: Any, allowance: Allowance) -> None:
        self._unpacked, self._allowance = unpacked, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._unpacked.readinto(buffer)
        self._allowance.take(count)
        return count

    def close(self) -> None:
        self._unpacked.close()
        super().close()
