"""Corpora: passages read line by line from the forms in which people publish them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import CorpusError, unknown_name
from ...common.packed_files import uncompressed
from ..passage import Passage
from .corpus_format import BadText, CorpusFormat, Parse, numbered
from .json_lines import JSON_LINES
from .kilt_articles import KILT
from .tsv import TSV
from .wikipedia_abstracts import HOTPOTQA, is_archive

logger = logging.getLogger(__name__)

FORMATS: dict[str, CorpusFormat] = {form.name: form for form in (HOTPOTQA, KILT, TSV, JSON_LINES)}
"""The forms that are read, the particular before the general, in the order in which they are recognised."""

_NAMED_IN_A_WARNING = 20
_BAD_AT_MOST = 10_000
"""Bad lines that are left out of a corpus with fewer passages; each is kept in memory."""
_SHOWN = 100  # characters of an id


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
        bad: the lines that were left out so far.
    """

    def __init__(
        self,
        corpus: str | Path | Iterable[Passage],
        *,
        corpus_format: str | None = None,
        skip_bad: bool = False,
    ) -> None:
        self._corpus, self._form = corpus, named_format(corpus_format) if corpus_format else None
        self._skip_bad = skip_bad
        self.bad: list[BadLine] = []
        self.name = Path(corpus).name if isinstance(corpus, (str, Path)) else "passages"

    def __iter__(self) -> Iterator[Passage]:
        return self.passages()

    def passages(self, behind: Iterable[Passage] = ()) -> Iterator[Passage]:
        """Yield passages that are there already, and then those of the corpus, whose ids must be new."""
        seen = set[str]()
        yield from _once(behind, seen)
        before, corpus = len(seen), self._corpus
        if isinstance(corpus, (str, Path)):
            yield from _passages(Path(corpus), self._form, seen, self.bad if self._skip_bad else None)
        else:
            yield from _once(corpus, seen)
        if self.bad:
            logger.warning("%s", _described(self.name, self.bad))
        if len(seen) == before:
            raise CorpusError(f"{self.name} holds no passage. Of a file, each line is a JSON object or tab-separated.")


def read_corpus(path: str | Path, *, corpus_format: str | None = None, skip_bad: bool = False) -> CorpusSource:
    """Return the passages of a corpus, to go through once; it is never held whole, only its ids.

    The forms are JSON lines (``id`` or ``_id``, ``title``, ``text``; without an id the line's number is it), ColBERT's
    and DPR's tab-separated lines, HotpotQA's Wikipedia abstracts (the archive, or its folder) and KILT's knowledge
    source; see ``FORMATS``. Files may be compressed: ``.gz``, ``.bz2``, ``.xz``. Blank lines are passed over.

    Args:
        path: a file, or the folder of an archive.
        corpus_format: one of ``FORMATS``; by default the name and the first line decide.
        skip_bad: keep the good lines; the bad ones are named in a warning at the end, and are `CorpusSource.bad`.

    Raises:
        CorpusError: if there is no such file or format, no passage in it, or a bad line (with ``skip_bad``: many of
            them, and more than passages).
    """
    return CorpusSource(path, corpus_format=corpus_format, skip_bad=skip_bad)


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


def _passages(path: Path, form: CorpusFormat | None, seen: set[str], bad: list[BadLine] | None) -> Iterator[Passage]:
    """Yield the passages of good lines.

    Args:
        form: of the file, or None to recognise it.
        bad: takes the bad lines; if None, the first of them is an error.
    """
    form = form or (HOTPOTQA if is_archive(path) else None)
    parse: Parse | None = None
    good = left_out = 0
    for file, number, line in numbered(path) if form is None else form.lines(path):
        try:
            text = _decoded(line, number)
            if not text.strip():
                continue
            if parse is None:
                known = (one for one in FORMATS.values() if one.recognises(uncompressed(path), text))
                form = form or next(known, JSON_LINES)
                below = form.below(text)
                parse = below or form.parse
                if below:
                    continue
            for passage in parse(text, number):
                if passage.id in seen:
                    shown = repr(passage.id[:_SHOWN])
                    raise BadText(f"the id {shown} stands on an earlier line too, or in the index that is added to")
                seen.add(passage.id)
                good += 1
                yield passage
        except BadText as problem:
            if bad is None:
                raise CorpusError(
                    f"{file}, line {number}: {problem}. Correct the line, or keep only the good ones (--skip-bad)."
                ) from None
            bad.append(BadLine(number, str(problem), file))
            left_out += 1
            if left_out > max(_BAD_AT_MOST, good):
                raise CorpusError(
                    f"{file} is no corpus of this format: {left_out:,} bad lines up to line {number:,}, and {good:,} "
                    f"passages. The last one: {problem}."
                ) from None


def named_format(name: str) -> CorpusFormat:
    """Return the form of that name."""
    if name not in FORMATS:
        raise CorpusError(unknown_name("corpus format", name, FORMATS))
    return FORMATS[name]


def _described(file: str, bad: list[BadLine]) -> str:
    """Return a sentence on the lines that were left out of a corpus."""
    named = "; ".join(f"line {line.number}: {line.problem}" for line in bad[:_NAMED_IN_A_WARNING])
    more = len(bad) - _NAMED_IN_A_WARNING
    return f"{file}: {len(bad)} bad lines left out ({named}{f'; and {more} more' if more > 0 else ''})"


def _decoded(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as problem:
        raise BadText(f"not UTF-8 (byte {problem.start})") from None
