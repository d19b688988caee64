"""A JSON array, CSV with a header, and Parquet: each row is read as a line of JSON is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ...common.errors import CorpusError
from ...common.rows import KINDS, kind_of, rows_of
from .corpus_format import CorpusFormat, Line
from .json_lines import numbered_since, passages


def _lines(path: Path, kind: str) -> Iterator[Line]:
    """Yield each row as JSON, with its number below the header."""
    try:
        for number, row in enumerate(rows_of(path, kind), 1):
            yield f"{path} (row by row)", number, json.dumps(row, default=str).encode()
    except ValueError as problem:
        raise CorpusError(f"{path} cannot be read: {problem}.") from problem


def _form(kind: str) -> CorpusFormat:
    def recognises(path: Path, first: str) -> bool:
        return kind_of(path, first) == kind

    return CorpusFormat(kind, recognises, passages, partial(_lines, kind=kind), remark=numbered_since)


ROW_FILES = tuple(map(_form, KINDS))
