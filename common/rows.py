"""Files of rows, each with named values: a JSON array of objects, CSV with a header, and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .json_files import not_utf8
from .packed_files import UNREADABLE, open_unpacked, uncompressed

Row = dict[str, Any]
csv.field_size_limit(64 << 20)  # of the process; Python's own limit is 128 KB, less than a long article


def _of_array(path: Path) -> Iterator[Any]:
    with open_unpacked(path) as file:
        yield from json.loads(file.read().decode("utf-8-sig"))


def _of_csv(path: Path) -> Iterator[Row]:
    """Yield the rows below a header; one of other separators than commas (Excel's) tells them by itself."""
    with io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig", newline="") as file:
        names = next((line for line in file if line.strip()), "")
        separator = max(",;\t|", key=names.count)
        columns = next(csv.reader([names], delimiter=separator), [])
        for row in csv.DictReader(file, [name.strip().lower() for name in columns], delimiter=separator, strict=True):
            yield {name: text for name, text in row.items() if name and text}


def _of_parquet(path: Path) -> Iterator[Row]:
    from pyarrow import parquet

    with open_unpacked(path) as file:
        for batch in parquet.ParquetFile(file).iter_batches(1_000):
            for row in batch.to_pylist():
                yield {name: value for name, value in row.items() if value == value}  # no NaN


Kind = tuple[Callable[[Path, str], bool], Callable[[Path], Iterator[Any]]]
KINDS: dict[str, Kind] = {
    "parquet": (lambda path, first: first.startswith("PAR1"), _of_parquet),
    "csv": (lambda path, first: path.suffix.lower() == ".csv", _of_csv),
    "json": (lambda path, first: path.suffix.lower() != ".tsv" and first.lstrip().startswith("["), _of_array),
}
"""Of each kind: whether a file of that name and first line is of it, and what gives its rows."""


def kind_of(path: Path, first: str) -> str | None:
    """Return the kind of a file's rows by its name and its first line; None if each line is one."""
    return next((name for name, (means, _) in KINDS.items() if means(uncompressed(path), first)), None)


def rows_of(path: Path, kind: str) -> Iterator[Any]:
    """Yield the rows of a file in their order; CSV's names are in lower case. Only an array is held whole.

    Raises:
        ValueError: if it cannot be read, or is damaged.
    """
    try:
        yield from KINDS[kind][1](path)
    except UnicodeDecodeError as problem:
        raise ValueError(not_utf8(problem)) from problem
    except (*UNREADABLE, ValueError, csv.Error, RecursionError) as problem:
        raise ValueError(getattr(problem, "strerror", None) or str(problem).rstrip(".")) from problem
