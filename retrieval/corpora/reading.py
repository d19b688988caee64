"""Corpora: passages read line by line from the forms in which people publish them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import CorpusError
from ..passage import Passage
from .corpus_format import BadText, Parse
from .files import LONGEST_LINE, numbered, uncompressed
from .formats import named_format, recognised_format
from .hotpotqa import HOTPOTQA, is_archive
from .seen import SeenIds

logger = logging.getLogger(__name__)

_NAMED_IN_A_WARNING = 20


@dataclass(frozen=True)
class BadLine:
    """A line that is no passage: its number in its file, from 1, what is wrong with it, and that file."""

    number: int
    problem: str
    file: str = ""


def read_corpus(
    path: str | Path,
    *,
    corpus_format: str | None = None,
    skip_bad: bool = False,
    bad: list[BadLine] | None = None,
    seen: SeenIds | None = None,
) -> Iterator[Passage]:
    r"""The passages of a corpus, one by one; it is never held whole (only a hash of each id: see ``SeenIds``).

    Read are JSON lines (``id``, ``title``, ``text``; without ``id`` the line's number is the id), ColBERT's and DPR's
    tab-separated lines, HotpotQA's Wikipedia abstracts (the archive, or its folder) and KILT's knowledge source; see
    ``FORMATS``. Files may be packed: ``.gz``, ``.bz2``, ``.xz``. Blank lines are passed over.

    Args:
        path: a file, or the folder of an archive.
        corpus_format: one of ``FORMATS``; by default the name and the first line decide.
        skip_bad: keep the good lines; the bad ones are counted and named in a warning at the end.
        bad: a list to which the bad lines are appended, for whoever reports them.
        seen: ids that are taken; those of the corpus are added.

    Raises:
        CorpusError: no such file or format, no passage in it, or (unless ``skip_bad``) its first bad line.
    """
    bad, seen = [] if bad is None else bad, SeenIds() if seen is None else seen
    already_bad, count = len(bad), 0
    for passage in _passages(Path(path), corpus_format, seen, bad=bad if skip_bad else None):
        count += 1
        yield passage
    if len(bad) > already_bad:
        logger.warning("%s", described(Path(path), bad[already_bad:]))
    if not count:
        raise CorpusError(f"{path} holds no passage. Expected one JSON object or tab-separated passage a line.")


def _passages(path: Path, corpus_format: str | None, seen: SeenIds, bad: list[BadLine] | None) -> Iterator[Passage]:
    """The passages of good lines.

    Args:
        path: of the corpus.
        corpus_format: its form, if it is not to be recognised.
        seen: ids that are taken.
        bad: takes the bad lines; without it the first of them is an error.
    """
    form = named_format(corpus_format) if corpus_format else HOTPOTQA if is_archive(path) else None
    parse: Parse | None = None
    for file, number, line in numbered(path) if form is None else form.lines(path):
        try:
            text = _decoded(line, number)
            if not text.strip():
                continue
            if parse is None:
                form = form or recognised_format(uncompressed(path), text)
                parse, is_header = form.parser(text)
                if is_header:
                    continue
            for passage in parse(text, number):
                if not seen.add(passage.id):
                    raise BadText(
                        f"the id {passage.id!r} stands on an earlier line too, or in the index that is added to"
                    )
                yield passage
        except BadText as problem:
            if bad is None:
                raise CorpusError(
                    f"{file}, line {number}: {problem}. Correct the line, or keep only the good ones (--skip-bad)."
                ) from None
            bad.append(BadLine(number, str(problem), file))


def described(file: Path, bad: list[BadLine]) -> str:
    """One sentence on the lines that were left out of a corpus."""
    named = "; ".join(f"line {line.number}: {line.problem}" for line in bad[:_NAMED_IN_A_WARNING])
    more = len(bad) - _NAMED_IN_A_WARNING
    return f"{file}: {len(bad)} bad lines left out ({named}{f'; and {more} more' if more > 0 else ''})"


def _decoded(line: bytes, number: int) -> str:
    if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
        raise BadText(f"longer than {LONGEST_LINE >> 20} MiB")
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as problem:
        raise BadText(f"not UTF-8 (byte {problem.start})") from None
