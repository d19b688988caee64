"""Names of retrievers: a folder, an address, or several of these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..common.errors import QuestreeError
from .contracts import Retriever
from .fusion import FusionRetriever, check_agreement
from .index_folder import load_index
from .serving.client import RemoteRetriever
from .serving.server_limits import read_token

_JOINT = "+"
_ADDRESSES = ("http:", "https:")


def open_retriever(name: str | Path) -> Retriever:
    """Return the retriever of a name.

    Args:
        name: an index's folder; ``http://host:port`` of ``questree serve-retriever`` (its token, if it asks for one, is
            in the variable ``QUESTREE_TOKEN``); or several joined by ``+``, which are fused by rank.

    Raises:
        QuestreeError: if no index or server is there, one must not be used, or their corpora do not go together.
    """
    return open_members(named_members(name))


def open_members(members: Sequence[str]) -> Retriever:
    """Return the one retriever, or the fusion of several, of `named_members`; raise what `open_retriever` raises."""
    opened = [_open(member) for member in members]
    if len(opened) == 1:
        return opened[0]
    check_agreement(opened)
    return FusionRetriever(opened)


def named_members(name: str | Path) -> tuple[str, ...]:
    """Return the retrievers that a name stands for, each by address or absolute folder, whose name may hold a ``+``.

    Raises:
        QuestreeError: if a part of the name is empty, or there twice.
    """
    parts = [str(name)] if Path(name).is_dir() else [part.strip() for part in str(name).split(_JOINT)]
    if not all(parts):
        raise QuestreeError(f"{str(name)!r} names no retriever: give a folder or an address on each side of {_JOINT}.")
    members = tuple(part.rstrip("/") if part.startswith(_ADDRESSES) else str(Path(part).resolve()) for part in parts)
    if twice := next((part for part in members if members.count(part) > 1), None):
        raise QuestreeError(f"{twice} is named twice; fused with itself it ranks as it does alone. Name it once.")
    return members


def _open(member: str) -> Retriever:
    if member.startswith(_ADDRESSES):
        return RemoteRetriever.connect(member, token=read_token())
    return load_index(member)
