"""HotpotQA's Wikipedia of October 2017: the first paragraph of each article (Yang et al., EMNLP 2018, appendix).

Published as ``enwiki-20171001-pages-meta-current-withlinks-abstracts.tar.bz2``: an archive of ``AA/wiki_00.bz2`` …,
each with an article a line: ``id``, ``url``, ``title``, ``text`` (its sentences), ``charoffset`` and links.
"""

from __future__ import annotations

import bz2
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from ...common.errors import CorpusError
from ..passage import Passage
from .corpus_format import TROUBLE, CorpusFormat, Line, numbered_lines, passage_of
from .json_lines import Article, read_line


def _passages(line: str, number: int) -> Iterable[Passage]:
    """Yield the abstract; nothing for an article without one."""
    article = read_line(Article, line)
    if text := "".join(article.text).strip():
        yield passage_of(str(article.id), text, article.title, article.url)


def _lines(path: Path) -> Iterator[Line]:
    """Yield the lines of the archive in the order of its members, or of the unpacked folder by name."""
    if path.is_dir():
        return _of_folder(path)
    return _of_archive(path) if is_archive(path) else numbered_lines(path)


def _of_folder(folder: Path) -> Iterator[Line]:
    files = sorted(path for path in folder.rglob("wiki_*") if path.is_file())
    if not files:
        raise CorpusError(
            f"There is no wiki_00.bz2 or the like in the folder {folder}. Name a file, or HotpotQA's unpacked archive."
        )
    for path in files:
        yield from numbered_lines(path)


def _of_archive(path: Path) -> Iterator[Line]:
    found = False
    try:
        with tarfile.open(path, mode="r|*") as archive:  # a stream: nothing is looked for
            for member in archive:
                archive.members.clear()  # type: ignore[attr-defined]  # nothing is kept either
                opened = archive.extractfile(member) if member.isfile() else None
                if opened is None or not Path(member.name).name.startswith("wiki_"):
                    continue
                found = True
                with bz2.BZ2File(opened) if member.name.endswith(".bz2") else opened as lines:
                    yield from numbered_lines(path, cast("BinaryIO", lines), within=member.name)
    except TROUBLE as problem:
        raise CorpusError(f"{path} cannot be read as an archive: {problem}. Fetch it again.") from problem
    if not found:
        raise CorpusError(f"{path} is no archive of HotpotQA's abstracts: there is no wiki_00.bz2 or the like in it.")


def is_archive(path: Path) -> bool:
    """Tell whether it is the folder, or has the name of an archive."""
    return path.is_dir() or path.name.lower().endswith((".tar", ".tar.bz2", ".tar.gz", ".tar.xz", ".tgz", ".tbz2"))


HOTPOTQA = CorpusFormat(
    "hotpotqa",
    lambda path, first: is_archive(path) or '"charoffset"' in first,
    _passages,
    _lines,
)
