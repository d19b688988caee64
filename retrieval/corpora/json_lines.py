"""A JSON object a line: ``id`` (or BEIR's ``_id``), ``title``, ``text``; without an id the line's number is it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from ..passage import Passage
from .corpus_format import BadText, CorpusFormat, passage_of


class JsonLine(BaseModel):
    """A line of a form: nothing is converted, and unknown fields are passed over."""

    model_config = ConfigDict(strict=True)


class Article(JsonLine):
    """An article whose text is in pieces."""

    id: str | int
    title: str
    text: list[str]


class _Line(JsonLine):
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "_id"))
    title: str | None = None
    text: str


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
        raise BadText(f'{field}{fault["msg"]} (a line is {{"id": "1", "title": "…", "text": "…"}})') from None


def _passages(line: str, number: int) -> Iterable[Passage]:
    row = read_line(_Line, line)
    yield passage_of(str(number if row.id is None else row.id), row.text, row.title or "")


def is_json(path: Path, first: str) -> bool:
    """Tell whether a file of that name and first line holds JSON."""
    suffix = path.suffix.lower()
    return suffix in (".jsonl", ".json", ".ndjson") or (suffix != ".tsv" and first.lstrip().startswith("{"))


JSON_LINES = CorpusFormat("jsonl", is_json, _passages)
