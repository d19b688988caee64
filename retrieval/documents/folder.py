"""A folder of documents, with which an index is kept in step: only what changed is read again."""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from ...common.errors import CorpusError
from ...common.files import file_hash
from ...common.json_files import check_regular, parse_json, read_bytes, validate
from ...common.manifests import installed_versions
from ...common.text import printable
from ..checkpoints import window_of
from ..corpora.corpus import FORMATS, BadLine, CorpusSource
from ..corpora.corpus_format import numbered
from ..indexes.contents import DOCUMENTS, PassageStore
from ..indexes.index_kind import IndexKind
from ..passage import Passage
from .reading import LARGEST, SUFFIXES, read_document
from .splitting import Room, passages_of

_READERS = ("questree", "markitdown", "pypdfium2", "semantic-text-splitter", "markdown-it-py")
_OF_A_CORPUS = (".csv", ".txt", ".text")  # ends of names that corpora of lines have as well
_SPECIAL = 10  # tokens that an encoder sets about a passage, with the words before it that some want


class DocumentRecord(BaseModel):
    """A document as it was read: its hash (none if it was too large), its passages, and what is wrong with it."""

    sha256: str = ""
    passages: int = 0
    problem: str = ""


class DocumentsRecord(BaseModel):
    """What an index holds of a folder of documents.

    Attributes:
        root: the folder, absolute, from which the names of the documents begin.
        pattern: of the names that were asked for; empty for all.
        readers: the versions of the packages that read and split them.
        documents: by name, in the order of their passages in the index.
    """

    root: str
    pattern: str
    readers: dict[str, str]
    documents: dict[str, DocumentRecord]


class Changes(NamedTuple):
    """How many documents changed since they were indexed."""

    new: int
    changed: int
    gone: int
    as_before: int

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in self._asdict().items())


class Documents(CorpusSource):
    """Documents as a corpus. `bad` are those that cannot be read.

    Args:
        corpus: a folder, a document or a pattern.
        strict: refuse all of them for one that cannot be read.

    Attributes:
        room: gives how much a passage may hold: some words, unless `for_kind` says otherwise.
        passed_over: how many files there are of kinds that are not read, by the ends of their names.
    """

    def __init__(self, corpus: str | Path, *, strict: bool = False) -> None:
        super().__init__(())
        self._strict, self.name, self.passed_over = strict, Path(corpus).name, Counter[str]()
        self.room: Callable[[], Room] = cache(Room)
        self._root, self._pattern, paths = _found(Path(corpus))
        self._names = sorted(path.relative_to(self._root).as_posix() for path in paths if self._is_read(path))
        self._former, self._held = DocumentsRecord(root="", pattern="", readers={}, documents={}), Path()
        self._record = self._former

    def _is_read(self, path: Path) -> bool:
        suffix = path.suffix.lower()
        if known := suffix in SUFFIXES or path.is_dir():
            return known
        self.passed_over[suffix or path.name] += 1
        return False

    def for_kind(self, kind: IndexKind, checkpoint: str | Path | None, settings: Any) -> None:
        """Let passages be as long as the encoder of a kind of index reads; its tokenizer is loaded when needed."""
        self.room = cache(partial(_room, kind, checkpoint, settings))

    def follow(self, version: Path) -> bool:
        """Return whether a version of an index holds documents of this folder; if so, only changes are read."""
        try:
            former = validate(DocumentsRecord, parse_json(read_bytes(version / DOCUMENTS)))
        except (OSError, ValueError):
            return False
        if (former.root, former.pattern) != (str(self._root), self._pattern):
            return False
        if former.readers == installed_versions(_READERS):
            self._former, self._held = former, version
            for name, one in former.documents.items():
                self._leave_out(BadLine(0, one.problem, printable(name)))
        return True

    @cached_property
    def changes(self) -> Changes:
        """Return what changed since the version that is followed; this reads all files, and takes none apart."""
        former = self._former.documents
        there = {name: self._hash(name) for name in self._names}
        same = sum(name in former and former[name].sha256 == there[name] for name in there)
        known = len(there.keys() & former.keys())
        return Changes(len(there) - known, known - same, len(former) - known, same)

    def told(self) -> str:
        """Return what a person is told of the documents once they are indexed."""
        over = ", ".join(f"{count:,} {suffix}" for suffix, count in sorted(self.passed_over.items()))
        left = f"; {len(self.bad):,} left out" if self.bad else ""
        return f"documents: {self.changes}{left}" + (f"; not read: {over}" if over else "")

    def record(self) -> str:
        """Return what is to be kept in the index, when its passages were gone through."""
        return self._record.model_dump_json(indent=1) + "\n"

    def passages(self, behind: Iterable[Passage] = ()) -> Iterator[Passage]:
        """Yield the passages of each document, in the order of names; those that are as before from the index."""
        if tuple(behind):
            raise CorpusError("Documents are not added to an index: put them into its folder, and index that again.")
        places, end = {}, 0
        for name, one in self._former.documents.items():
            places[name], end = end, end + one.passages
        self.bad, documents = [], dict[str, DocumentRecord]()
        held = PassageStore(self._held) if places else ()
        for name in self._names:
            former = self._former.documents.get(name)
            documents[name], passages = self._read(name, former)
            if documents[name] is former:
                passages = (held[place] for place in range(places[name], places[name] + former.passages))
            self._leave_out(BadLine(0, documents[name].problem, printable(name)))
            yield from passages
        readers = installed_versions(_READERS)
        self._record = DocumentsRecord(
            root=str(self._root), pattern=self._pattern, readers=readers, documents=documents
        )
        if not sum(one.passages for one in documents.values()):
            why = f": {self.bad[0].file}: {self.bad[0].problem}" if self.bad else f" ({', '.join(SUFFIXES)} are read)"
            raise CorpusError(f"{self._root} holds no document that can be read{why}.")

    def _leave_out(self, line: BadLine, good: int = 0) -> None:
        """Note a document with a problem, if it has one; refuse all for it where that is asked for."""
        if line.problem and self._strict:
            raise CorpusError(f"{self._root / line.file}: {line.problem}. Or leave it out: without --strict.")
        self.bad += [line] if line.problem else []

    def _read(self, name: str, former: DocumentRecord | None) -> tuple[DocumentRecord, Iterable[Passage]]:
        """Return the record of a document and its passages; the former record and none if it is as before."""
        digest = ""
        try:
            content = read_bytes(self._path(name), LARGEST)
            digest = hashlib.sha256(content).hexdigest()
            if former and former.sha256 == digest:
                return former, ()
            passages = list(passages_of(name, read_document(name, content), self.room()))
            return DocumentRecord(sha256=digest, passages=len(passages)), passages
        except (ValueError, OSError) as problem:
            told = getattr(problem, "strerror", None) or str(problem)
            return DocumentRecord(sha256=digest, problem=told), ()

    def _hash(self, name: str) -> str:
        try:
            return file_hash(self._path(name))
        except (ValueError, OSError):
            return ""

    def _path(self, name: str) -> Path:
        """Return where a document is; raise a ValueError where it is not read."""
        name.encode()  # a UnicodeEncodeError is a ValueError
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root):
            raise ValueError("it is a link out of the folder: put a copy in its place")
        check_regular(found := path.stat())
        if found.st_size > LARGEST:
            raise ValueError(
                f"it has {found.st_size >> 20:,} MB, more than the {LARGEST >> 20} that are read: split it"
            )
        return path


def are_documents(corpus: str | Path) -> bool:
    """Return whether a name stands for documents, and no corpus of lines: a folder, a document or a pattern."""
    path = Path(corpus)
    if path.is_dir():
        return next(path.rglob("wiki_*"), None) is None
    if not path.exists():
        return glob.has_magic(str(path))
    if path.suffix.lower() in _OF_A_CORPUS:
        first = next((line.decode("utf-8", "replace") for _, _, line in numbered(path)), "").lower()
        by_kind = "text" in first or "contents" in first
        return not (
            by_kind if path.suffix.lower() == ".csv" else any(one.recognises(path, first) for one in FORMATS.values())
        )
    return path.suffix.lower() in SUFFIXES


def _found(corpus: Path) -> tuple[Path, str, list[Path]]:
    """Return the folder of documents, the pattern (or name) of those that are asked for in it, and the files."""
    if corpus.is_dir():
        root, walked = corpus.resolve(), list[Path]()
        for place, inner, files in os.walk(root):
            inner[:] = [name for name in inner if not _hidden(name)]
            named = [Path(place) / name for name in [*files, *inner] if not _hidden(name)]
            walked += [path for path in named if not path.is_dir() or not path.resolve().is_relative_to(root)]
        return root, "", walked
    if corpus.exists():
        whole = corpus.resolve()
        return whole.parent, whole.name, [whole]
    fixed = next(place for place, part in enumerate(corpus.parts) if glob.has_magic(part))
    root, pattern = Path(*corpus.parts[:fixed]).resolve(), "/".join(corpus.parts[fixed:])
    matching = [root / name for name in glob.glob(pattern, root_dir=root, recursive=True)]
    return root, pattern, [path for path in matching if not path.is_dir()]


def _hidden(name: str) -> bool:
    return name.startswith((".", "~$"))  # the latter of Office, while a document is open


def _room(kind: IndexKind, checkpoint: str | Path | None, settings: Any) -> Room:
    if kind.find is None:
        return Room()
    from transformers import AutoTokenizer

    folder = kind.find(checkpoint).folder
    window = min(window_of(folder), getattr(settings, "window", None) or window_of(folder))
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    return Room(window - _SPECIAL, lambda text: len(fast.encode(text, add_special_tokens=False).ids), fast)
