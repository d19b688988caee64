"""A JSON object a line: ``id`` (or BEIR's ``_id``), ``title``, ``text``; without an id the line's number is it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..passage import Passage
from .corpus_format import BadText, CorpusFormat, passage_of, same_for_all


def object_of(line: str) -> dict[str, Any]:
    """Return the JSON object of a line.

    Raises:
        BadText: if there is none.
    """
    try:
        row = json.loads(line)
    except ValueError as problem:
        raise BadText(f'not JSON ({problem}), such as {{"id": "1", "title": "…", "text": "…"}}') from None
    except RecursionError:
        raise BadText("not JSON that can be read (nested too deeply)") from None
    if not isinstance(row, dict):
        raise BadText(f"a JSON {type(row).__name__} where an object is expected")
    return row


def id_of(row: dict[str, Any], name: str) -> str | None:
    """Return the row's id under that name, as text, or None if it has none.

    Raises:
        BadText: if it is neither text nor a whole number.
    """
    given = row.get(name)
    if not isinstance(given, (str, int, type(None))) or isinstance(given, bool):
        raise BadText(f"its `{name}` is neither text nor a whole number")
    return None if given is None else str(given)


def article_of(line: str, id_name: str, title_name: str, pieces: str) -> tuple[str, Any, list[str]]:
    """Return the id, the title and the pieces of text of an article.

    Args:
        pieces: what the entries of its field ``text`` are, for messages.

    Raises:
        BadText: if a field is missing, or ``text`` is not a list of texts.
    """
    row = object_of(line)
    for field in (id_name, title_name, "text"):
        if field not in row:
            raise BadText(f"it lacks the field `{field}`")
    text = row["text"]
    if not isinstance(text, list) or not all(isinstance(piece, str) for piece in text):
        raise BadText(f"its `text` is not a list of {pieces}")
    return id_of(row, id_name) or "", row[title_name], text


def _passages(line: str, number: int) -> Iterable[Passage]:
    row = object_of(line)
    if "text" not in row:
        raise BadText("it lacks the field `text`")
    given = id_of(row, "_id" if row.get("id") is None else "id")
    yield passage_of(str(number) if given is None else given, row["text"], row.get("title") or "")


def is_json(path: Path, first: str) -> bool:
    """Tell whether a file of that name and first line holds JSON."""
    suffix = path.suffix.lower()
    return suffix in (".jsonl", ".json", ".ndjson") or (suffix != ".tsv" and first.lstrip().startswith("{"))


JSON_LINES = CorpusFormat("jsonl", "JSON lines: id, title, text", is_json, same_for_all(_passages))
