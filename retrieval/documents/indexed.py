"""The documents that were indexed, for whoever opens a citation: what stands beside a passage, and the file itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from ...common.errors import CorpusError
from ...common.json_files import read_bytes
from ...common.text import printable
from ..base import IndexRetriever, WrappingRetriever
from ..contracts import Retriever
from ..indexes.contents import PassageStore
from ..passage import Passage
from .folder import DocumentsRecord, held_documents, path_in
from .texts import LARGEST

_UNCOMPARED = {"score", "linked_from"}


class IndexedDocuments:
    """The documents behind the passages of retrievers, as far as their indexes are on this machine.

    Only a passage that an index holds, as it is, leads to a file, and only to one that was indexed and is as it was.
    """

    def __init__(self, retrievers: Iterable[Retriever | None]) -> None:
        self._held: list[tuple[PassageStore, DocumentsRecord, dict[str, int]]] = []
        for store in {store.folder: store for one in retrievers for store in _stores(one)}.values():
            with suppress(OSError, ValueError):
                record = held_documents(store.folder)
                *firsts, count = accumulate((one.passages for one in record.documents.values()), initial=0)
                if count == len(store):
                    self._held.append((store, record, dict(zip(record.documents, firsts, strict=True))))

    def beside(self, passage: Passage) -> tuple[str, str] | None:
        """Return what stands before a passage in its document, and after it; None if its document is not known."""
        if (found := self._found(passage)) is None:
            return None
        store, record, name, at = found
        first, number = at - _number(passage), _number(passage)
        last = first + record.documents[name].passages - 1
        return (store[at - 1].text if number else "", store[at + 1].text if at < last else "")

    def content(self, passage: Passage) -> tuple[str, bytes]:
        """Return the name of the document that a passage comes from, and what the file holds.

        Raises:
            CorpusError: it comes from none that is indexed, or that is gone, changed, or a link out of its folder.
        """
        if (found := self._found(passage)) is None:
            raise CorpusError("The passage comes from no document that is indexed here, or no longer from this one.")
        _, record, name, _ = found
        named, root = printable(name), Path(record.root)
        try:
            content = read_bytes(path_in(root, name), LARGEST)
        except FileNotFoundError as problem:
            gone = "it" if root.is_dir() else "the folder that was indexed"
            raise CorpusError(f"{named} cannot be opened: {gone} is gone.") from problem
        except (OSError, ValueError) as problem:
            raise CorpusError(
                f"{named} cannot be opened: {getattr(problem, 'strerror', None) or problem}."
            ) from problem
        if hashlib.sha256(content).hexdigest() != record.documents[name].sha256:
            raise CorpusError(f"{named} has changed since it was indexed: index its folder again.")
        return name, content

    def _found(self, passage: Passage) -> tuple[PassageStore, DocumentsRecord, str, int] | None:
        name, number = passage.id.rpartition(":")[0], _number(passage)
        for store, record, firsts in self._held:
            if name in firsts and 0 <= number < record.documents[name].passages:
                held = store[firsts[name] + number]
                if held.model_dump(exclude=_UNCOMPARED) == passage.model_dump(exclude=_UNCOMPARED):
                    return store, record, name, firsts[name] + number
        return None


def _number(passage: Passage) -> int:
    """Return the number of a passage in its document, from 0."""
    written = passage.id.rpartition(":")[2]
    return int(written) - 1 if written.isascii() and written.isdecimal() and len(written) < 10 else -1


def _stores(retriever: Retriever | None) -> Iterator[PassageStore]:
    """Yield the passages of each index folder that a retriever searches."""
    if isinstance(retriever, IndexRetriever) and isinstance(retriever.passages, PassageStore):
        yield retriever.passages
    linked = getattr(retriever, "base", None)  # of a `LinkedRetriever`, which stands above this module
    for one in retriever.members if isinstance(retriever, WrappingRetriever) else filter(None, [linked]):
        yield from _stores(one)
