r"""Tab-separated passages: ColBERT's ``pid\ttext`` and DPR's ``id\ttext\ttitle`` (psgs_w100.tsv)."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from ..passage import Passage
from .corpus_format import BadText, CorpusFormat, Parse, passage_of
from .json_lines import is_json

Columns = tuple[int, int, "int | None"]
"""Where id, text and title stand."""
_HEADERS: dict[tuple[str, ...], Columns] = {
    ("id", "text", "title"): (0, 1, 2),
    ("id", "title", "text"): (0, 2, 1),
    ("pid", "text"): (0, 1, None),
    ("id", "text"): (0, 1, None),
}
_QUOTE = '"'


def _plain(line: str, number: int) -> Iterable[Passage]:
    """Yield the passage of a line of ColBERT's form, which has no header and quotes nothing."""
    yield _passage(line.split("\t"), (0, 1, 2))


def _quoted(columns: Columns) -> Parse:
    """Return how lines below a header are parsed: as Python's csv module writes them, which DPR uses."""

    def parse(line: str, number: int) -> Iterable[Passage]:
        if _QUOTE not in line:  # most lines; csv would take them apart at the tabs too
            yield _passage(line.split("\t"), columns)
            return
        try:
            cells = next(csv.reader([line], delimiter="\t"))
        except csv.Error as problem:
            raise BadText(f"not as csv writes a line ({problem})") from None
        yield _passage(cells, columns)

    return parse


def _passage(cells: list[str], columns: Columns) -> Passage:
    if len(cells) < 2:
        raise BadText("it lacks the field `text` (no tab in it)")
    if len(cells) > 3:
        raise BadText(f"{len(cells)} tab-separated fields where two or three are expected")
    of_id, of_text, of_title = columns
    if of_text >= len(cells):
        raise BadText("it lacks the field `text`")
    title = cells[of_title] if of_title is not None and of_title < len(cells) else ""
    return passage_of(cells[of_id], cells[of_text], title)


def _columns(first: str) -> Columns | None:
    return _HEADERS.get(tuple(name.strip().lower() for name in first.split("\t")))


def _parser(first: str) -> tuple[Parse, bool]:
    columns = _columns(first)
    return (_plain, False) if columns is None else (_quoted(columns), True)


def _dpr_parser(first: str) -> tuple[Parse, bool]:
    columns = _columns(first)
    return _quoted(columns or (0, 1, 2)), columns is not None


def _has_tabs(path: Path, first: str) -> bool:
    return path.suffix.lower() == ".tsv" or ("\t" in first and not is_json(path, first))


def _has_titles(path: Path, first: str) -> bool:
    columns = _columns(first)
    return columns is not None and columns[2] is not None and _has_tabs(path, first)


COLBERT_TSV = CorpusFormat(
    "colbert-tsv", "tab-separated pid, text (ColBERT), with a header or without", _has_tabs, _parser
)
DPR_TSV = CorpusFormat(
    "dpr-tsv", "DPR's 100-word Wikipedia passages (psgs_w100.tsv): id, text, title, quoted", _has_titles, _dpr_parser
)
