"""The passages of a text that was read: by headings, then paragraphs, then sentences; tables by rows with their header.

semantic-text-splitter finds where paragraphs, sentences and words end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ...common.errors import needs_extra
from ..passage import Passage
from .texts import ReadText

WORDS = 150
"""Words of a passage where no encoder says how much it reads."""
_HEADING = 80  # characters of a heading that are shown
_FRONT = re.compile(r"---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)  # settings, before the Markdown of many sites
_WRAP = re.compile(r"(?<=[^\n]{40})\n(?=[^\W\d])")  # where a long line goes on: no place to split before sentences
_NO_FRAGMENT = re.compile(r"[^\w\- ]")
Piece = tuple[int, int, str]
"""Where it begins and ends in the text that was read, and what it says."""


def words_and_letters(text: str) -> int:
    """Return how many words a text has; of scripts without spaces (or with long words), by its letters."""
    return max(len(text.split()), len(text.encode()) // 12)


@dataclass(frozen=True)
class Room:
    """How much a passage may hold.

    Attributes:
        most: of what `size` counts, title included.
        size: of a text: its words, or an encoder's tokens.
    """

    most: int = WORDS
    size: Callable[[str], int] = words_and_letters

    def pieces(self, text: str, first: int, last: int, most: int, *, marked_up: bool) -> Iterator[Piece]:
        """Yield the pieces of a part of a text, none in the middle of a word unless one word is too long."""
        with needs_extra("documents"):
            from semantic_text_splitter import MarkdownSplitter, TextSplitter
        splitter = (MarkdownSplitter if marked_up else TextSplitter).from_callback(self.size, most)
        for place, piece in splitter.chunk_indices(_WRAP.sub(" ", text[first:last])):
            start, end = first + place, first + place + len(piece)
            yield start, end, text[start:end]

    def rows(self, text: str, first: int, last: int, most: int) -> Iterator[Piece]:
        """Yield the rows of a table, as many together as there is room for, each time below its header."""
        lines = [f"{line}\n" for line in text[first:last].rstrip("\n").split("\n")]
        header = "".join(lines[:2])
        begin = at = first + len(header)
        size = of_header = self.size(header)
        for line in [*lines[2:], ""]:
            more = self.size(line)
            if begin < at and (not line or size + more > most):
                yield from self._below(header, text, begin, at, most)
                begin, size = at, of_header
            at, size = at + len(line), size + more

    def _below(self, header: str, text: str, first: int, last: int, most: int) -> Iterator[Piece]:
        shown = header + text[first:last].rstrip()
        if self.size(shown) <= most:
            yield first, first + len(text[first:last].rstrip()), shown
        else:  # a row of long cells
            yield from self.pieces(text, first, last, most, marked_up=False)


class _Section(NamedTuple):
    """A part of a text below one heading: its title, its fragment, and where its paragraphs and its tables stand."""

    title: str
    fragment: str
    parts: list[tuple[int, int, bool]]


def document_passages(path: str, texts: Iterable[ReadText], room: Room) -> Iterator[Passage]:
    """Yield the passages of a document.

    Args:
        path: of the document, from the folder that is indexed, with ``/`` between folders.
        texts: of the document.
        room: for title and text of each.
    """
    numbers, named = count(1), re.sub("[%#?]", lambda sign: f"%{ord(sign[0]):02X}", path)
    for read in texts:
        for section in _sections(read, _cut(PurePosixPath(path).stem)):
            most = max(room.most // 4, room.most - room.size(f"{section.title} | "))
            for first, last, is_table in section.parts:
                table = room.rows(read.text, first, last, most) if is_table else None
                for start, end, text in table or room.pieces(read.text, first, last, most, marked_up=read.marked_up):
                    if any(map(str.isalnum, text)):
                        source = f"{named}#{section.fragment}" if section.fragment else named
                        where: dict[str, Any] = {"source": source, "start": start, "end": end}
                        yield Passage(id=f"{path}:{next(numbers)}", title=section.title, text=text, **where)


def _sections(read: ReadText, name: str) -> list[_Section]:
    """Return the sections of a text, each with the headings above it, the document's name first unless one says it."""
    if not read.marked_up:
        fragment = f"page={read.page}" if read.page else ""
        title = f"{name} › page {read.page}" if read.page else name
        return [_Section(title, fragment, [(0, len(read.text), False)])]
    from markdown_it import MarkdownIt

    front = _FRONT.match(read.text)
    base = front.end() if front else 0
    lines = read.text[base:].split("\n")
    starts = [*accumulate((len(line) + 1 for line in lines), initial=base)]
    tokens = MarkdownIt("commonmark").enable("table").parse(read.text[base:])
    tops = [pair for pair in pairwise([*tokens, *tokens[:1]]) if not pair[0].level and pair[0].map]
    headings = [token.tag for token, _ in tops if token.type == "heading_open"]
    above = [] if headings[:1] == ["h1"] and headings.count("h1") == 1 else [(0, name)]
    sections, used = [_Section(name, "", [])], Counter[str]()
    for token, inside in tops:
        first, last = (starts[line] for line in token.map or ())
        if token.type == "heading_open":
            level = int(token.tag[1:])
            above = [one for one in above if one[0] < level] + [(level, _told(inside) or "…")]
            fragment = _NO_FRAGMENT.sub("", above[-1][1].lower()).replace(" ", "-")
            used[fragment] += 1
            again = f"-{used[fragment] - 1}" if used[fragment] > 1 else ""
            sections.append(_Section(" › ".join(text for _, text in above), fragment + again, []))
            continue
        parts, is_table = sections[-1].parts, token.type == "table_open"
        if parts and not is_table and not parts[-1][2]:
            first = parts.pop()[0]
        parts.append((first, min(last, len(read.text)), is_table))
    return sections


def _told(inline: Any) -> str:
    """Return what a heading says, without its marks."""
    said = (one.content for one in inline.children or () if one.type in ("text", "code_inline"))
    return _cut("".join(said))


def _cut(heading: str) -> str:
    return heading if len(heading) <= _HEADING else f"{heading[: _HEADING - 1]}…"
