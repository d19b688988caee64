"""Lines of files, plain or compressed, none of them held whole."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

from ...common.errors import CorpusError

Line = tuple[str, int, bytes]
"""A line of a corpus: the file in which it stands, its number there, from 1, and its bytes."""
LONGEST_LINE = 64 << 20
"""Bytes; the longest article of a Wikipedia is a tenth of it."""
TROUBLE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError)
"""What reading a damaged file raises."""
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def uncompressed(path: Path) -> Path:
    """The name without the suffix of a compression."""
    return path.with_suffix("") if path.suffix.lower() in _OPENERS else path


def numbered(path: Path, opened: IO[bytes] | None = None, *, within: str = "") -> Iterator[Line]:
    """The lines of a file; one that is longer than ``LONGEST_LINE`` comes cut to one byte more than that.

    Args:
        path: a file; ``.gz``, ``.bz2`` and ``.xz`` are unpacked as they are read.
        opened: its lines, where it is opened already.
        within: which member of the archive ``path`` that is.

    Raises:
        CorpusError: it cannot be read, or ends in the middle.
    """
    name = f"{path} ({within})" if within else str(path)
    try:
        with nullcontext(opened) if opened is not None else _opened(path) as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                yield name, number, line
                while len(line) > LONGEST_LINE and not line.endswith(b"\n"):  # pass over what is left of it
                    line = file.readline(LONGEST_LINE + 1)
    except TROUBLE as problem:
        raise CorpusError(f"{name} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from problem


def _opened(path: Path) -> Any:
    opener = _OPENERS.get(path.suffix.lower())
    return path.open("rb") if opener is None else opener(path, "rb")
