"""Compressed files, unpacked as they are read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a damaged file raises."""
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def open_unpacked(path: Path) -> BinaryIO:
    """Open a file for reading; ``.gz``, ``.bz2`` and ``.xz`` are unpacked as they are read.

    Raises:
        OSError: if it cannot be read.
    """
    opener = _OPENERS.get(path.suffix.lower())
    return path.open("rb") if opener is None else cast("BinaryIO", opener(path, "rb"))


def uncompressed(path: Path) -> Path:
    """Return the name without the suffix of a compression."""
    return path.with_suffix("") if path.suffix.lower() in _OPENERS else path
