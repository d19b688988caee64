"""Addresses of collections: on a server of Qdrant, or in a folder of this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import QuestreeError

KEY_VARIABLE = "QDRANT_API_KEY"
_SCHEMES = {"qdrant": "http", "qdrants": "https"}
_COLLECTION = r'[^<>:"/\\|?*+\0\x1f]+'
"""Without Qdrant's list of characters that no name has, and the sign that joins names of retrievers."""
_SERVER = re.compile(rf"(qdrants?)://([\w.-]+|\[[\da-fA-F:.]+\])(?::(\d{{1,5}}))?/({_COLLECTION})/?")
_FOLDER = re.compile(rf"qdrant:(?!//)(.*[^/].*?)/+({_COLLECTION})/?")


@dataclass(frozen=True)
class QdrantAddress:
    """Where a collection is.

    Attributes:
        server: ``http://host:port`` or https; empty for a folder.
        folder: of Qdrant's local mode, which needs no server; None for a server.
    """

    collection: str
    server: str = ""
    folder: Path | None = None

    @classmethod
    def parse(cls, address: str) -> QdrantAddress:
        """Return what an address says."""
        if found := _SERVER.fullmatch(address):
            scheme, host, port, collection = found.groups()
            return cls(collection, server=f"{_SCHEMES[scheme]}://{host.lower()}:{port or 6333}")
        if found := _FOLDER.fullmatch(address):
            return cls(found[2], folder=Path(found[1]).expanduser().resolve())
        shown = "This" if {"@", "?"} & set(address) else repr(address)
        raise QuestreeError(
            f"{shown} is no address of a collection of Qdrant. Write qdrant://HOST:6333/COLLECTION, qdrants:// with "
            f"TLS, or qdrant:FOLDER/COLLECTION without a server; a key goes into {KEY_VARIABLE}."
        )

    def __str__(self) -> str:
        if self.folder is not None:
            return f"qdrant:{self.folder}/{self.collection}"
        return f"{self.server.replace('http', 'qdrant', 1)}/{self.collection}"
