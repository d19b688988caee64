"""Addresses of collections: on a server of Qdrant, or in a folder of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ...common.errors import QuestreeError

KEY_VARIABLE = "QDRANT_API_KEY"
_FORMS = "qdrant://HOST:6333/COLLECTION, qdrants:// with TLS, or qdrant:FOLDER/COLLECTION without a server"
_SCHEMES = {"qdrant": "http", "qdrants": "https"}
_PORT = 6333
_NOT_IN_NAMES = frozenset('<>:"/\\|?*+\0\x1f')
"""Characters that no collection's name has: Qdrant's list, and the sign that joins names of retrievers."""


@dataclass(frozen=True)
class QdrantAddress:
    """Where a collection is.

    Attributes:
        collection: its name.
        server: ``http://host:port`` or https; empty for a folder.
        folder: of Qdrant's local mode, which needs no server; None for a server.
    """

    collection: str
    server: str = ""
    folder: Path | None = None

    @staticmethod
    def means(name: str) -> bool:
        """Return whether a name is meant as such an address."""
        return name.partition(":")[0] in _SCHEMES and ":" in name

    @classmethod
    def parse(cls, address: str) -> QdrantAddress:
        """Return what an address says.

        Raises:
            QuestreeError: if it is none, or holds a name or a password.
        """
        scheme, _, place = address.partition(":")
        if scheme not in _SCHEMES:
            raise QuestreeError(f"{address!r} is no address of a collection. Write {_FORMS}.")
        at, slash, collection = place.rstrip("/").rpartition("/")
        if not slash or not at.strip("/") or not collection or _NOT_IN_NAMES & set(collection):
            raise QuestreeError(f"{_shown(address)} names no collection of Qdrant. Write {_FORMS}.")
        if at.startswith("//"):
            return cls(collection, server=_server(scheme, at, address))
        if scheme != "qdrant":
            raise QuestreeError(f"{address} is no address of a collection. Write {_FORMS}.")
        return cls(collection, folder=Path(at).expanduser().resolve())

    def __str__(self) -> str:
        if self.folder is not None:
            return f"qdrant:{self.folder}/{self.collection}"
        scheme, _, place = self.server.partition("://")
        return f"{'qdrants' if scheme == 'https' else 'qdrant'}://{place}/{self.collection}"


def _server(scheme: str, at: str, address: str) -> str:
    try:
        parts = urlsplit(at)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError as problem:
        raise QuestreeError(f"{_shown(address)} is no address of a collection ({problem}). Write {_FORMS}.") from None
    if parts.username is not None or parts.password is not None or parts.query:
        raise QuestreeError(f"Give no name, password or key in an address: Qdrant's key goes into {KEY_VARIABLE}.")
    if not host or parts.path or parts.fragment:
        raise QuestreeError(f"{_shown(address)} is no address of a collection. Write {_FORMS}.")
    return f"{_SCHEMES[scheme]}://{f'[{host}]' if ':' in host else host}:{port}"


def _shown(address: str) -> str:
    """Return an address without what may be a password or a key."""
    return address if not {"@", "?"} & set(address) else "This"
