"""One way to name a retriever: a folder, an address, or several of these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..common.errors import QuestreeError
from .contracts import Retriever
from .fusion import FusionRetriever, check_agreement
from .indexes.index import load_index
from .serving.client import RemoteRetriever
from .serving.limits import read_token

_JOINT = "+"
_ADDRESSES = ("http:", "https:")


def open_retriever(name: str | Path) -> Retriever:
    """The retriever of that name.

    Args:
        name: an index's folder; ``http://host:port`` of ``questree serve-retriever`` (its token, where it asks for
            one, is in the variable ``QUESTREE_TOKEN``); or several joined by ``+``, which are fused by rank.

    Raises:
        QuestreeError: no index or server there, one that must not be used, or corpora that do not go together.
    """
    return open_members(named_members(name))


def open_members(members: Sequence[str]) -> Retriever:
    """The one retriever, or the fusion of several, each as ``named_members`` gives it; errors as ``open_retriever``."""
    opened = [_opened(member) for member in members]
    if len(opened) == 1:
        return opened[0]
    check_agreement(opened)
    return FusionRetriever(opened)


def named_members(name: str | Path) -> tuple[str, ...]:
    """The retrievers that a name stands for, each by address or absolute folder; a folder may have a ``+`` in its name.

    Raises:
        QuestreeError: a part of the name is empty, or there twice.
    """
    parts = [str(name)] if Path(name).is_dir() else [part.strip() for part in str(name).split(_JOINT)]
    if not all(parts):
        raise QuestreeError(f"{str(name)!r} names no retriever: give a folder or an address on each side of {_JOINT}.")
    members = tuple(part.rstrip("/") if part.startswith(_ADDRESSES) else str(Path(part).resolve()) for part in parts)
    if twice := next((part for part in members if members.count(part) > 1), None):
        raise QuestreeError(f"{twice} is named twice; fused with itself it ranks as it does alone. Name it once.")
    return members


def _opened(member: str) -> Retriever:
    if member.startswith(_ADDRESSES):
        return RemoteRetriever.connect(member, token=read_token())
    return load_index(member)
