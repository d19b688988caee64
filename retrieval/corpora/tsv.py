r"""Tab-separated passages: ColBERT's ``pid\ttext`` and DPR's ``id\ttext\ttitle`` (psgs_w100.tsv)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

from ...common.errors import CorpusError
from ..passage import Passage
from .corpus_format import BadText, CorpusFormat, Parse, passage_of
from .json_lines import IDS, is_json

Columns = tuple[int, int, "int | None"]
"""Where id, text and title stand."""
_QUOTE = '"'
_NAME = re.compile(r"[A-Za-z][A-Za-z_.-]+")


def _plain(line: str, number: int) -> Iterable[Passage]:
    """Yield the passage of a line of ColBERT's form, which has no header and quotes nothing."""
    yield _passage(line.split("\t"), (0, 1, 2))


def _below(header: str) -> Parse | None:
    """Return how lines below a header are parsed: as Python's csv module writes them, which DPR uses."""
    if (columns := _columns(header)) is None:
        return None

    def parse(line: str, number: int) -> Iterable[Passage]:
        if _QUOTE not in line:  # most lines; csv would take them apart at the tabs too
            yield _passage(line.split("\t"), columns)
            return
        rows = csv.reader([line, ""], delimiter="\t")
        cells = next(rows)
        if rows.line_num > 1:
            raise BadText(
                "a quotation mark opens a field that this line does not close (a passage is one line; below a header, "
                "a field that begins with a mark of its own is quoted, and the mark doubled)"
            )
        if None not in columns and len(cells) < 3 and line.count(_QUOTE) % 2:
            raise BadText("a quotation mark closes a field that an earlier line opened (a passage is one line)")
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
    """Return where a header says that id, text and title stand; None if the line is no header."""
    names = [cell.strip().strip(_QUOTE).strip().lower() for cell in first.split("\t")]
    of_id = [place for place, name in enumerate(names) if name in IDS]
    others = sorted(name for name in names if name not in IDS)
    if len(of_id) == 1 and others in (["text"], ["text", "title"]):
        return of_id[0], names.index("text"), names.index("title") if "title" in names else None
    if {"text", "title"} & {*names} or of_id or all(map(_NAME.fullmatch, names)):  # a text has more than one word
        raise CorpusError(
            f"The header {', '.join(names)!r} is not understood. Name the columns id, text and title (title may be "
            "left out), in any order. If it is a passage, put the line id, text, title (with tabs) above it."
        )
    return None


TSV = CorpusFormat(
    "tsv",
    lambda path, first: path.suffix.lower() == ".tsv" or ("\t" in first and not is_json(path, first)),
    _plain,
    below=_below,
)
