"""A JSON object a line: ``id``, ``title``, ``text``, ``url`` or ``source``; without an id the line's number is it.

BEIR, MIRACL and ColBERT name the id otherwise (`IDS`). Pyserini and FlashRAG have ``contents`` for title and text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from ...common.errors import CorpusError
from ...common.row_files import kind_of, rows_of
from ..passage import Passage
from .corpus_format import BadText, CorpusFormat, Line, passage_of

IDS = ("id", "_id", "pid", "passage_id", "docid", "doc_id")
"""The names of fields and columns that hold ids, of a passage before those of its document."""
_TITLED = re.compile(r'\s*"([^\n]+)"[^\S\n]*\n(?=\s*\S)')  # what stands before the text in FlashRAG's ``contents``


def _spelt(names: Iterable[str]) -> Iterator[str]:
    return (spelt for name in names for spelt in (name, name.capitalize(), name.upper()))


class JsonLine(BaseModel):
    """A line of a form: nothing is converted, and unknown fields are passed over."""

    model_config = ConfigDict(strict=True)


class Article(JsonLine):
    """An article whose text is in pieces."""

    id: str | int
    title: str
    text: list[str]
    url: Any = None


class _Line(JsonLine):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)  # the others are kept to be named

    id: str | int | float | None = Field(default=None, validation_alias=AliasChoices(*_spelt(IDS)))
    title: str | None = Field(default=None, validation_alias=AliasChoices(*_spelt(("title",))))
    text: str | None = Field(default=None, validation_alias=AliasChoices(*_spelt(("text",))))
    contents: str | None = None
    source: Any = Field(default=None, validation_alias=AliasChoices(*_spelt(("url", "source"))))


_FORM = '(a line is {"id": "1", "title": "…", "text": "…"})'
L = TypeVar("L", bound=JsonLine)


def read_line(kind: type[L], line: str) -> L:
    """Return what a line of JSON holds.

    Raises:
        BadText: if it is no JSON object of that kind.
    """
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = f"its `{fault['loc'][0]}`: " if fault["loc"] else ""
        raise BadText(f"{field}{fault['msg']} {_FORM}") from None


def _passages(line: str, number: int) -> Iterable[Passage]:
    """Yield the passage of an object; its number is its id if it has none."""
    row = read_line(_Line, line)
    text, title = row.text, row.title
    if text is None:
        text, titled = row.contents, _TITLED.match(row.contents or "")
        if text is None:
            raise BadText(
                f"its `text`: Field required, it has {', '.join(row.model_extra or ()) or 'no other'} {_FORM}"
            )
        if titled:
            text, title = text[titled.end() :], title or titled[1]
    whole = isinstance(row.id, float) and row.id.is_integer()  # as pandas writes the ids of a column with gaps
    id_ = number if row.id is None else int(row.id) if whole else row.id
    yield passage_of(str(id_), text, title or "", row.source)


def _numbered(line: str) -> str:
    """Return what to tell of the first line of a corpus that has fields, but none that is read as an id."""
    row = read_line(_Line, line)
    if row.id is not None or not row.model_extra:
        return ""
    return (
        f"its passages are numbered, since no field is read as their id ({', '.join(IDS)} would be); not read: "
        f"{', '.join(row.model_extra)}. If one of these is the id that gold passages are named by, rename it"
    )


def is_json(path: Path, first: str) -> bool:
    """Tell whether a file of that name and first line holds JSON."""
    suffix = path.suffix.lower()
    return suffix in (".jsonl", ".json", ".ndjson") or (suffix != ".tsv" and first.lstrip().startswith("{"))


def _rows(path: Path, kind: str) -> Iterator[Line]:
    """Yield each row of a file as a line of JSON, with its number below the header."""
    try:
        for number, row in enumerate(rows_of(path, kind), 1):
            yield f"{path} (row by row)", number, json.dumps(row, default=str).encode()
    except ValueError as problem:
        raise CorpusError(f"{path} cannot be read: {problem}.") from problem


def _form(kind: str) -> CorpusFormat:
    return CorpusFormat(
        kind, lambda path, first: kind_of(path, first) == kind, _passages, partial(_rows, kind=kind), remark=_numbered
    )


JSON_LINES = CorpusFormat("jsonl", is_json, _passages, remark=_numbered)
ROW_FILES = tuple(map(_form, ("parquet", "csv", "json")))
"""Other files of the same fields: they are read as lines are."""
