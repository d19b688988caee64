"""The form of a corpus: which files have it, and how their lines become passages. Lines are read, never held whole."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ...common.errors import CorpusError
from ...common.packed_files import UNREADABLE, open_unpacked
from ..passage import Passage

Line = tuple[str, int, bytes]
"""A line of a corpus: the name of its file, its number there, from 1, and its bytes."""
TROUBLE = (*UNREADABLE, tarfile.TarError)
"""What reading a damaged file raises."""
Parse = Callable[[str, int], Iterable[Passage]]
"""Gives the passages of a line and its number: none, one, or (of an article) many. Raises `BadText`."""


class BadText(Exception):
    """A fault of the line at hand."""


def numbered_lines(path: Path, opened: IO[bytes] | None = None, *, within: str = "") -> Iterator[Line]:
    """Yield the lines of a file.

    Args:
        path: a file; ``.gz``, ``.bz2`` and ``.xz`` are unpacked as they are read.
        opened: its lines, if it is open already.
        within: its name in the archive ``path``, if it is a member of one.

    Raises:
        CorpusError: if it cannot be read, or ends in the middle.
    """
    name = f"{path} ({within})" if within else str(path)
    try:
        with nullcontext(opened) if opened is not None else open_unpacked(path) as file:
            for number, line in enumerate(file, 1):
                yield name, number, line
    except TROUBLE as problem:
        raise CorpusError(f"{name} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from problem


@dataclass(frozen=True)
class CorpusFormat:
    """A published form of corpora.

    Attributes:
        name: as in ``--format``.
        recognises: tells whether a file of that name, with that first line, has this form.
        parse: of a line.
        lines: gives the lines of a corpus; by default those of one file.
        below: gives, by a first line that is a header, how the lines below it are parsed; None of another first line.
        remark: gives, by a first line, what the user is told of it; nothing if it is as it should be.
    """

    name: str
    recognises: Callable[[Path, str], bool]
    parse: Parse
    lines: Callable[[Path], Iterator[Line]] = numbered_lines
    below: Callable[[str], Parse | None] = lambda first: None
    remark: Callable[[str], str] = lambda first: ""


def passage_of(id_: str, text: str, title: str, source: object = None) -> Passage:
    """Return the passage that a line holds; what its source should be counts if it is text.

    Raises:
        BadText: if it has no text or no id.
    """
    if not text.strip() or not id_.strip():
        raise BadText(f"its `{'id' if text.strip() else 'text'}` is empty")
    told = source.strip() if isinstance(source, str) else ""
    return Passage(id=id_.strip(), title=title.strip(), text=text.strip(), source=told)
