"""Names of retrievers: a folder, an address, another package's, or several of these; and names of readers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..common.errors import QuestreeError
from ..common.registry import Registry
from .contracts import DuplicateCheck, Reader, Retriever

_JOINT, _LINKED = "+", "linked:"
_ADDRESSES, _QDRANT = ("http:", "https:"), ("qdrant:", "qdrants:")


def _made(found: Any) -> Any:
    """Return what a class or a function makes; an object is there already."""
    return found() if isinstance(found, type) or inspect.isfunction(found) else found


def _read_reader(name: str, found: Any) -> Reader:
    reader: Reader = _made(found)
    for needed in ("name", "threshold", "read_many"):
        if not hasattr(reader, needed):
            raise TypeError(f"it has no {needed!r}, which every reader has")
    return reader


def _read_retriever(name: str, found: Any) -> Retriever:
    from .adapted import as_retriever  # only now: most retrievers are ours

    parameters = inspect.signature(found).parameters.values() if inspect.isfunction(found) else ()
    takes_query = any(one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
    return as_retriever(found if takes_query else _made(found))


RETRIEVERS: Registry[Retriever] = Registry("retriever", {}, _read_retriever)
"""Retrievers of other packages: each an object, a function from a query, or a class or function that makes one."""

READERS: Registry[Reader] = Registry("reader", {}, _read_reader)
"""Readers of other packages: each an object, or a class or function that makes it and takes nothing."""


def _read_duplicates(name: str, found: Any) -> DuplicateCheck:
    check: DuplicateCheck = _made(found) if isinstance(found, type) else found
    if not callable(check):
        raise TypeError("it is no duplicate check: give a function (query, seen) that returns an index or None")
    return check


DUPLICATES: Registry[DuplicateCheck] = Registry("duplicate check", {}, _read_duplicates)
"""Duplicate checks of other packages: each a function, or a class of such objects that is made without arguments."""


def open_retriever(name: str | Path) -> Retriever:
    """Return the retriever of a name.

    Args:
        name: an index's folder; ``http://host:port`` of ``questree serve-retriever`` (its token, if it asks for one, is
            in the variable ``QUESTREE_TOKEN``); a collection of Qdrant, ``qdrant://host:6333/collection`` (its key, if
            it asks for one, is in ``QDRANT_API_KEY``) or ``qdrant:folder/collection`` without a server;
            ``package:name``, or what a package offers; or several joined by ``+``, which are fused by rank. With
            ``linked:`` before it, one search brings what its best passages lead to as well; where none of it is a
            folder, ``@`` and an index of kind ``linked`` stand behind it.

    Raises:
        QuestreeError: if no index or server is there, one must not be used, or their corpora do not go together.
    """
    return open_members(named_members(name))


def open_members(members: Sequence[str]) -> Retriever:
    """Return the one retriever, or the fusion of several, of `named_members`; raise what `open_retriever` raises."""
    if members[0].startswith(_LINKED):
        folders = [Path(member) for member in members[1:] if Path(member).is_dir()]
        links = members[0].removeprefix(_LINKED)
        from .linked.retriever import linked

        return linked(open_members(members[1:]), folders, Path(links) if links else None)
    opened = [_open(member) for member in members]
    if len(opened) == 1:
        return opened[0]
    from .fusion import FusionRetriever

    return FusionRetriever(opened)


def named_members(name: str | Path) -> tuple[str, ...]:
    """Return the retrievers that a name stands for, each by address or absolute folder, whose name may hold a ``+``.

    Before those that are linked stands ``linked:``, and the folder of the links if the name gives one.
    """
    if str(name).startswith(_LINKED):
        rest, _, links = str(name).removeprefix(_LINKED).rpartition("@")
        if rest and Path(links).is_dir():
            return f"{_LINKED}{Path(links).resolve()}", *named_members(rest)
        return _LINKED, *named_members(str(name).removeprefix(_LINKED))
    parts = [str(name)] if Path(name).is_dir() else [part.strip() for part in str(name).split(_JOINT)]
    if not all(parts):
        raise QuestreeError(f"{str(name)!r} names no retriever: give a folder or an address on each side of {_JOINT}.")
    members = tuple(map(_member, parts))
    if twice := next((part for part in members if members.count(part) > 1), None):
        raise QuestreeError(f"{twice} is named twice; fused with itself it ranks as it does alone. Name it once.")
    return members


def _member(part: str) -> str:
    if part.startswith(_ADDRESSES):
        return part.rstrip("/")
    if part.startswith(_QDRANT):
        from .qdrant.address import QdrantAddress

        return str(QdrantAddress.parse(part))
    if RETRIEVERS.means(part):
        return part
    return str(Path(part).resolve())


def _open(member: str) -> Retriever:
    """Open one retriever; what it is made of is imported only here."""
    if member.startswith(_ADDRESSES):
        from .serving.client import RemoteRetriever

        return RemoteRetriever(member)
    if member.startswith(_QDRANT):
        from .qdrant.searcher import QdrantRetriever

        return QdrantRetriever(member)
    from .index_folder import load_index

    return load_index(member) if Path(member).is_absolute() else RETRIEVERS.named(member)
