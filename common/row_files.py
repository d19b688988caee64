"""Files of rows with named values: a JSON array of objects, CSV with a header, and Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

from .json_files import not_utf8
from .packed_files import UNREADABLE, open_unpacked, uncompressed

csv.field_size_limit(64 << 20)  # of the process; Python's own limit is 128 KB, less than a long article


def kind_of(path: Path, first: str) -> str | None:
    """Return the kind of a file's rows by its name and the text that it begins with; None if each line is one."""
    suffix = uncompressed(path).suffix.lower()
    if first.startswith("PAR1") or suffix == ".csv":
        return "parquet" if first.startswith("PAR1") else "csv"
    return "json" if suffix != ".tsv" and first.lstrip().startswith("[") else None


def rows_of(path: Path, kind: str) -> Iterator[Any]:
    """Yield the rows of a file in their order; CSV's names are in lower case. Only an array is held whole.

    Raises:
        ValueError: if it cannot be read, or is damaged.
    """
    try:
        with open_unpacked(path) as file:
            yield from json.load(file) if kind == "json" else _of_csv(file) if kind == "csv" else _of_parquet(file)
    except UnicodeDecodeError as problem:
        raise ValueError(not_utf8(problem)) from problem
    except (*UNREADABLE, ValueError, csv.Error, RecursionError) as problem:
        raise ValueError(getattr(problem, "strerror", None) or str(problem).rstrip(".")) from problem


def _of_csv(file: BinaryIO) -> Iterator[dict[str, str]]:
    """Yield the rows below a header, without empty cells; the header tells the separator (Excel's may be others)."""
    lines = TextIOWrapper(file, encoding="utf-8-sig", newline="")
    header = next(filter(str.strip, lines), "").lower()
    separator = max(",;\t|", key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=separator), [])]
    for row in csv.DictReader(lines, names, delimiter=separator, strict=True):
        yield {name: text for name, text in row.items() if name and text}


def _of_parquet(file: BinaryIO) -> Iterator[Any]:
    from pyarrow import parquet

    for batch in parquet.ParquetFile(file).iter_batches(1_000):
        yield from batch.to_pylist()
