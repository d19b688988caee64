"""Corpora: passages read line by line from the forms in which people publish them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ...common.errors import CorpusError, unknown_name
from ...common.json_files import not_utf8
from ...common.packed_files import uncompressed
from ..passage import Passage
from .corpus_format import BadText, CorpusFormat, Line, Parse, numbered_lines
from .json_lines import JSON_LINES, ROW_FILES
from .kilt_articles import KILT
from .tsv import TSV
from .wikipedia_abstracts import HOTPOTQA, is_archive

logger = logging.getLogger(__name__)

FORMATS: dict[str, CorpusFormat] = {form.name: form for form in (*ROW_FILES, HOTPOTQA, KILT, TSV, JSON_LINES)}
"""The forms that are read, the particular before the general, in the order in which they are recognised."""

_NAMED_IN_A_WARNING = 20
_BAD_AT_MOST = 10_000
"""Bad lines that are left out of a corpus with fewer passages; each is kept in memory."""
_SHOWN = 100  # characters of an id
_LONGEST = 19  # digits of a number that others go on behind


@dataclass(frozen=True)
class BadLine:
    """A line that is no passage: its number in its file, from 1, what is wrong with it, and that file."""

    number: int
    problem: str
    file: str = ""


class CorpusSource:
    """A corpus that is read once: its name, its passages (also by iteration), and how many of its lines are bad.

    Args:
        corpus: a file or folder for `read_corpus`, or passages.
        corpus_format, skip_bad: as for `read_corpus`.

    Attributes:
        of_documents: whether it is `Documents`, with which an index is kept in step.
        bad: the lines that were left out so far.
    """

    of_documents = False

    def __init__(
        self,
        corpus: str | Path | Iterable[Passage],
        *,
        corpus_format: str | None = None,
        skip_bad: bool = False,
    ) -> None:
        if corpus_format and corpus_format not in FORMATS:
            raise CorpusError(unknown_name("corpus format", corpus_format, FORMATS))
        self._corpus, self._skip_bad = corpus, skip_bad
        self._form = FORMATS[corpus_format] if corpus_format else None
        self.bad: list[BadLine] = []
        self.name = Path(corpus).name if isinstance(corpus, (str, Path)) else "passages"

    def __iter__(self) -> Iterator[Passage]:
        return self.passages()

    def passages(self, behind: Iterable[Passage] = ()) -> Iterator[Passage]:
        """Yield passages that are there already, and then those of the corpus, whose ids must be new."""
        seen = set[str]()
        yield from _once(behind, seen)
        before, corpus = len(seen), self._corpus
        yield from self._of_file(Path(corpus), seen) if isinstance(corpus, (str, Path)) else _once(corpus, seen)
        if self.bad:
            named = "; ".join(f"line {line.number}: {line.problem}" for line in self.bad[:_NAMED_IN_A_WARNING])
            more = max(0, len(self.bad) - _NAMED_IN_A_WARNING)
            told = f"{named}; and {more} more" if more else named
            logger.warning("%s: %d bad lines left out (%s)", self.name, len(self.bad), told)
        if len(seen) == before:
            raise CorpusError(f"{self.name} holds no passage. Of a file, each line is a JSON object or tab-separated.")

    def _of_file(self, path: Path, seen: set[str]) -> Iterator[Passage]:
        """Yield the passages of good lines. Where lines have no ids, their numbers go on behind those that are seen."""
        form, lines = (self._form, self._form.lines(path)) if self._form else _recognised(path)
        before, last = len(seen), max((int(id) for id in seen if id.isdecimal() and len(id) < _LONGEST), default=0)
        parse: Parse | None = None
        for file, number, line in lines:
            try:
                text = _decoded(line, number)
                if not text.strip():
                    continue
                if parse is None:
                    below = form.below(text)
                    parse = below or form.parse
                    if below:
                        continue
                    if told := form.remark(text):
                        logger.warning("%s: %s.", self.name, told)
                for passage in parse(text, number + last):
                    if passage.id in seen:
                        shown = repr(passage.id[:_SHOWN])
                        raise BadText(f"the id {shown} stands on an earlier line too, or in the index that is added to")
                    seen.add(passage.id)
                    yield passage
            except BadText as problem:
                self._leave_out(BadLine(number, str(problem), file), len(seen) - before)

    def _leave_out(self, line: BadLine, good: int) -> None:
        """Note a bad line; refuse the corpus for it, unless bad ones are skipped and there are not many."""
        if not self._skip_bad:
            raise CorpusError(
                f"{line.file}, line {line.number}: {line.problem}. Correct the line, or keep only the good ones "
                "(--skip-bad)."
            ) from None
        self.bad.append(line)
        if len(self.bad) > max(_BAD_AT_MOST, good):
            raise CorpusError(
                f"{line.file} is no corpus of this format: {len(self.bad):,} bad lines up to line {line.number:,}, and "
                f"{good:,} passages. The last one: {line.problem}."
            ) from None


def read_corpus(path: str | Path, *, corpus_format: str | None = None, skip_bad: bool = False) -> CorpusSource:
    """Return the passages of a corpus, to go through once; it is never held whole, only its ids.

    The forms are JSON lines (``id``, ``title``, ``text``, or FlashRAG's ``contents``; without an id the line's number
    is it), a JSON array, CSV with a header and Parquet of the same fields, ColBERT's and DPR's tab-separated lines,
    HotpotQA's Wikipedia abstracts (the archive, or its folder) and KILT's knowledge source; see ``FORMATS``. Files may
    be compressed: ``.gz``, ``.bz2``, ``.xz``. Blank lines are passed over.

    Args:
        path: a file, or the folder of an archive.
        corpus_format: one of ``FORMATS``; by default the name and the first line decide.
        skip_bad: keep the good lines; the bad ones are named in a warning at the end, and are `CorpusSource.bad`.

    Raises:
        CorpusError: if there is no such file or format, no passage in it, or a bad line (with ``skip_bad``: many of
            them, and more than passages).
    """
    return CorpusSource(path, corpus_format=corpus_format, skip_bad=skip_bad)


def _recognised(path: Path) -> tuple[CorpusFormat, Iterable[Line]]:
    """Return the form that the name of a corpus and its first line tell, and its lines."""
    if is_archive(path):
        return HOTPOTQA, HOTPOTQA.lines(path)
    lines, read, first = numbered_lines(path), list[Line](), ""
    while not first.strip() and (line := next(lines, None)):
        read.append(line)
        first = line[2].decode("utf-8-sig", "replace").rstrip("\r\n")
    form = next((one for one in FORMATS.values() if one.recognises(uncompressed(path), first)), JSON_LINES)
    return form, chain(read, lines) if form.lines is numbered_lines else form.lines(path)  # once: it may be a pipe


def _once(passages: Iterable[Passage], seen: set[str]) -> Iterator[Passage]:
    """Yield passages whose ids are all new."""
    for passage in passages:
        if not isinstance(passage, Passage):
            raise CorpusError(
                f"A {type(passage).__name__} is no passage: give questree.Passage(id=…, title=…, text=…), or a file."
            )
        if passage.id in seen:
            raise CorpusError(f"There are two passages of the id {passage.id!r}: ids must be unique in an index.")
        seen.add(passage.id)
        yield passage


def _decoded(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as problem:
        raise BadText(not_utf8(problem)) from None
