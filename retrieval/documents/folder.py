"""A folder of documents, with which an index is kept in step: only what changed is read again."""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, NonNegativeInt

from ...common.errors import CheckpointError, CorpusError
from ...common.files import file_hash
from ...common.json_files import check_regular, parse_json, read_bytes, validate
from ...common.manifests import installed_versions
from ...common.text import printable, without_surrogates
from ..checkpoints import text_window
from ..corpora.corpus import FORMATS, BadLine, CorpusSource
from ..corpora.corpus_format import numbered_lines
from ..indexes.contents import DOCUMENTS, PassageStore
from ..indexes.index_kind import IndexKind
from ..passage import Passage
from .sections import Room, document_passages
from .texts import LARGEST, SUFFIXES, read_document

_READERS = ("questree", "markitdown", "pypdfium2", "semantic-text-splitter", "markdown-it-py")
_OF_A_CORPUS = (".csv", ".txt", ".text")  # ends of names that corpora of lines have as well
_HIDDEN = (".", "~$")  # the latter of Office, while a document is open
_SPECIAL = 10  # tokens that an encoder sets about a passage, with the words before it that some want


class DocumentRecord(BaseModel):
    """A document as it was read: its hash (none if it was too large), its passages, and what is wrong with it."""

    sha256: str = ""
    passages: NonNegativeInt = 0
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
    documents: dict[str, DocumentRecord] = {}


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
        record: what is to be kept in the index, when its passages were gone through.
    """

    of_documents = True

    def __init__(self, corpus: str | Path, *, strict: bool = False) -> None:
        super().__init__(())
        self._strict, self.name = strict, Path(corpus).name
        self.room: Callable[[], Room] = cache(Room)
        self._root, pattern, paths = _found(Path(corpus))
        self._names = sorted(path.relative_to(self._root).as_posix() for path in paths if not _passed_over(path))
        self.passed_over = Counter(filter(None, map(_passed_over, paths)))
        self.record = DocumentsRecord(root=str(self._root), pattern=pattern, readers=installed_versions(_READERS))
        self._former, self._held = dict[str, DocumentRecord](), Path()

    def for_kind(self, kind: IndexKind, checkpoint: str | Path | None, settings: Any) -> None:
        """Let passages be as long as the encoder of a kind of index reads; its tokenizer is loaded when needed."""
        self.room = cache(partial(_room, kind, checkpoint, settings))

    def follow(self, version: Path) -> bool:
        """Return whether a version of an index holds documents of this folder; if so, only changes are read."""
        try:
            former = held_documents(version)
            held = len(PassageStore(version))
        except (OSError, ValueError):
            return False
        if former.readers == self.record.readers and held == sum(one.passages for one in former.documents.values()):
            self._former, self._held = former.documents, version
        return (former.root, former.pattern) == (self.record.root, self.record.pattern)

    @cached_property
    def changes(self) -> Changes:
        """Return what changed since the version that is followed; this reads all files, and takes none apart."""
        known = self._former.keys() & {*self._names}
        same = sum(self._former[name].sha256 == self._hash(name) for name in known)
        return Changes(len(self._names) - len(known), len(known) - same, len(self._former) - len(known), same)

    def told(self) -> str:
        """Return what a person is told of the documents once they are indexed."""
        over = ", ".join(f"{count:,} {suffix}" for suffix, count in sorted(self.passed_over.items()))
        left = f"; {len(self.bad):,} of these left out" if self.bad else ""
        return f"documents: {self.changes}{left}" + (f"; not read: {over}" if over else "")

    def passages(self, behind: Iterable[Passage] = ()) -> Iterator[Passage]:
        """Yield the passages of each document, in the order of names; those that are as before from the index."""
        if tuple(behind):
            raise CorpusError("Documents are not added to an index: put them into its folder, and index that again.")
        places = dict(zip(self._former, accumulate(one.passages for one in self._former.values()), strict=True))
        held = PassageStore(self._held) if places else ()
        self.bad, self.record.documents = [], {}
        for name in self._names:
            record, passages = self._read(name)
            if record is self._former.get(name):
                passages = (held[place] for place in range(places[name] - record.passages, places[name]))
            self.record.documents[name] = record
            self._note(name, record)
            yield from passages
        if not sum(one.passages for one in self.record.documents.values()):
            why = f": {self.bad[0].file}: {self.bad[0].problem}" if self.bad else f" ({', '.join(SUFFIXES)} are read)"
            raise CorpusError(f"{self._root} holds no document that can be read{why}.")

    def as_before(self) -> bool:
        """Return whether nothing changed; then the documents that could not be read are `bad` again."""
        if any(self.changes[:3]):
            return False
        for name, record in self._former.items():
            self._note(name, record)
        return True

    def _note(self, name: str, record: DocumentRecord) -> None:
        """Note a document that cannot be read; refuse all for it where that is asked for."""
        if record.problem and self._strict:
            raise CorpusError(f"{self._root / printable(name)}: {record.problem}. Or leave it out: without --strict.")
        self.bad += [BadLine(0, record.problem, printable(name))] if record.problem else []

    def _read(self, name: str) -> tuple[DocumentRecord, Iterable[Passage]]:
        """Return the record of a document and its passages; the former record and none if it is as before."""
        digest = ""
        try:
            content = read_bytes(path_in(self._root, name), LARGEST)
            digest = hashlib.sha256(content).hexdigest()
            if name in self._former and self._former[name].sha256 == digest:
                return self._former[name], ()
            passages = list(document_passages(name, read_document(name, content), self.room()))
            return DocumentRecord(sha256=digest, passages=len(passages)), passages
        except (ValueError, OSError) as problem:
            told = getattr(problem, "strerror", None) or str(problem)
            return DocumentRecord(sha256=digest, problem=told), ()

    def _hash(self, name: str) -> str:
        with suppress(ValueError, OSError):
            return file_hash(path_in(self._root, name))
        return ""


def held_documents(version: Path) -> DocumentsRecord:
    """Return what a version of an index holds of documents; raise an OSError or a ValueError if that is nothing."""
    return validate(DocumentsRecord, parse_json(read_bytes(version / DOCUMENTS)))


def path_in(root: Path, name: str) -> Path:
    """Return where a document is; raise a ValueError where it is not read."""
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise ValueError("it is a link out of the folder: put a copy in its place")
    check_regular(found := path.stat())
    if found.st_size > LARGEST:
        raise ValueError(f"it has {found.st_size >> 20:,} MB; {LARGEST >> 20} are read at most: split it")
    return path


def are_documents(corpus: str | Path) -> bool:
    """Return whether a name stands for documents, and no corpus of lines: a folder, a document or a pattern."""
    path = Path(corpus)
    suffix = path.suffix.lower()
    if path.is_dir():
        return next(path.rglob("wiki_*"), None) is None
    if not path.exists():
        return glob.has_magic(str(path))
    if suffix in _OF_A_CORPUS:
        first = next((line.decode("utf-8", "replace") for _, _, line in numbered_lines(path)), "")
        return not any(form.recognises(path, first) for form in FORMATS.values())
    return suffix in SUFFIXES


def _passed_over(path: Path) -> str:
    """Return of which kind a file is that is not read; nothing of one that is, or of a link to a folder."""
    if without_surrogates(str(path)) != str(path):
        return "with a name that is not UTF-8"
    return "" if path.suffix.lower() in SUFFIXES or path.is_dir() else path.suffix.lower() or path.name


def _found(corpus: Path) -> tuple[Path, str, list[Path]]:
    """Return the folder of documents, the pattern (or name) of those that are asked for in it, and the files."""
    if corpus.is_dir():
        root, walked = corpus.resolve(), list[Path]()
        for place, inner, files in os.walk(root):
            inner[:] = [name for name in inner if not name.startswith(_HIDDEN)]
            named = [Path(place) / name for name in [*files, *inner] if not name.startswith(_HIDDEN)]
            walked += [path for path in named if not path.is_dir() or not path.resolve().is_relative_to(root)]
        return root, "", walked
    if corpus.exists():
        whole = corpus.resolve()
        return whole.parent, whole.name, [whole]
    fixed = next(place for place, part in enumerate(corpus.parts) if glob.has_magic(part))
    root, pattern = Path(*corpus.parts[:fixed]).resolve(), "/".join(corpus.parts[fixed:])
    matching = [root / name for name in glob.glob(pattern, root_dir=root, recursive=True)]
    return root, pattern, [path for path in matching if not path.is_dir()]


def _room(kind: IndexKind, checkpoint: str | Path | None, settings: Any) -> Room:
    if kind.find is None:
        return Room()
    from transformers import AutoTokenizer

    folder = kind.find(checkpoint).folder
    window = getattr(settings, "window", None) or text_window(folder, late=not hasattr(kind.settings, "window"))
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as problem:  # transformers raises many kinds
        raise CheckpointError(f"{folder} has no tokenizer that can be loaded ({problem}). Name another.") from problem

    def size(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False, verbose=False))

    return Room(window - _SPECIAL, size)
