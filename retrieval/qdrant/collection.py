"""A collection of Qdrant: every request to it, sent again after a failure in passing, or refused by name."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from ...common.errors import IndexRefused, QuestreeError, needs_extra
from ...common.forks import renew_in_forks
from ..base import batched
from ..indexes.contents import FORMAT, IndexManifest
from ..passage import Passage
from ..serving.access import is_loopback
from ..serving.remote_requests import TRANSIENT, RemoteError, RemoteSettings, TransientFault, one_line, retried
from .address import KEY_VARIABLE, QdrantAddress
from .embedded import hasten, open_folder
from .layout import QdrantSettings, layout, passage_from_point

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

T = TypeVar("T")

_KEY = "questree"
"""The name of what we keep in the collection's metadata, which Qdrant has since 1.16."""
_OLDEST_SERVER = (1, 16)
_PAGE = 1_000


class NoCollection(RemoteError):
    """A server that has no collection of the name."""


class State(BaseModel):
    """What a collection holds, as its metadata say.

    Attributes:
        finished: whether all of it is there.
        base: the index to which passages are being added; None if it is built from nothing.
    """

    model_config = ConfigDict(frozen=True)

    manifest: IndexManifest
    finished: bool = False
    base: IndexManifest | None = None


class Collection:
    """A collection on a server or in a folder; it need not exist yet. Safe in several threads."""

    def __init__(self, address: QdrantAddress, settings: RemoteSettings | None = None) -> None:
        with needs_extra("qdrant"):
            import qdrant_client  # noqa: F401
        self.address, self._settings = address, settings or RemoteSettings()
        if address.folder is None:
            renew_in_forks(self)
            told = self.ask(lambda client: client.info().version)
            if tuple(map(int, re.findall(r"\d+", told)[:2])) < _OLDEST_SERVER:
                raise RemoteError(
                    f"Qdrant at {address.server} is of version {told}, and 1.16 is the first that keeps what questree "
                    "writes with a collection. Upgrade it."
                )

    @classmethod
    def held(cls, address: str, settings: RemoteSettings | None = None) -> tuple[Collection, State]:
        """Return the collection at an address, and what it holds."""
        collection = cls(QdrantAddress.parse(address), settings)
        if (state := collection.state()) is not None:
            return collection, state
        raise IndexRefused(f"There is no index at {address}. Build one: questree index CORPUS --engine {address}")

    def renew(self) -> None:
        """Begin with no connections; those of another process are not used."""
        self.__dict__.pop("_client", None)

    @cached_property
    def _client(self) -> QdrantClient:
        """Return the client. Opening it makes a folder where there is none, so it is opened when it is first used."""
        if self.address.folder is not None:
            return open_folder(self.address.folder)
        from qdrant_client import QdrantClient

        here = is_loopback(urlsplit(self.address.server).hostname or "")
        return QdrantClient(
            url=self.address.server,
            api_key=os.environ.get(KEY_VARIABLE) or None,
            check_compatibility=False,  # it asks in a thread of its own, and only warns
            timeout=max(1, round(self._settings.answer_seconds)),
            trust_env=not here,  # a proxy leads away from this machine
        )

    def ask(self, what: Callable[[QdrantClient], T]) -> T:
        """Return what a request to the client returns."""
        if not (server := self.address.server):
            try:
                return what(self._client)
            except (OSError, sqlite3.Error) as problem:
                raise QuestreeError(
                    f"{self.address} cannot be read or written: {problem}. Make room, or name another folder; "
                    "what was written before is there."
                ) from problem
        return retried(
            partial(self._attempt, what),
            self._settings,
            server=f"Qdrant at {server}",
            advice=f"See that it runs: {server}/readyz",
        )

    def _attempt(self, what: Callable[[QdrantClient], T]) -> T:
        import httpx
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        server, collection = self.address.server, self.address.collection
        try:
            return what(self._client)
        except ResourceExhaustedResponse as busy:
            raise TransientFault(f"HTTP 429: {busy}", busy.retry_after_s) from busy
        except UnexpectedResponse as refused:
            fault = f"HTTP {refused.status_code}: {one_line(refused.content.decode(errors='replace'))}"
            if refused.status_code in TRANSIENT:
                raise TransientFault(fault) from refused
            if refused.status_code == 404:
                raise NoCollection(f"There is no collection {collection} at {server}.") from refused
            advice = f" Put its key into {KEY_VARIABLE}." if refused.status_code in (401, 403) else ""
            raise RemoteError(f"Qdrant at {server} refused the request ({fault}).{advice}") from refused
        except (ResponseHandlingException, ValueError) as failed:
            problem = getattr(failed, "source", failed)
            if isinstance(problem, httpx.RequestError):
                raise TransientFault(problem) from failed
            raise RemoteError(
                f"{server} gave an answer that qdrant-client {version('qdrant-client')} does not understand "
                f"({one_line(problem)}). See that it is Qdrant, of the same minor version or the next."
            ) from failed

    def state(self) -> State | None:
        """Return what the collection holds, or None if there is no collection."""
        name, folder = self.address.collection, self.address.folder
        if folder is not None and not ((folder / "meta.json").is_file() and self._client.collection_exists(name)):
            return None
        try:
            config = self.ask(lambda client: client.get_collection(name)).config
            state = State.model_validate_json((config.metadata or {})[_KEY])
        except NoCollection:
            return None
        except (KeyError, TypeError, ValidationError):
            raise IndexRefused(
                f"{self.address} is no index of questree's, or damaged: it is left as it is. Name another collection."
            ) from None
        if state.manifest.format != FORMAT:
            raise IndexRefused(f"{self.address} was written by another version of questree. Build it again.")
        return state

    def create(self, dim: int, settings: QdrantSettings, state: State) -> None:
        """Make the collection, empty."""
        name, metadata = self.address.collection, {_KEY: state.model_dump_json()}
        self.ask(lambda client: client.create_collection(name, metadata=metadata, **layout(dim, settings)))
        if self.address.folder is not None:
            hasten(self._client)

    def mark(self, state: State) -> None:
        """Write what the collection holds."""
        metadata = {_KEY: state.model_dump_json()}
        self.ask(lambda client: client.update_collection(self.address.collection, metadata=metadata))

    def drop(self) -> None:
        """Remove the collection."""
        self.ask(lambda client: client.delete_collection(self.address.collection))

    def count(self) -> int:
        """Return how many passages are there."""
        return self.ask(lambda client: client.count(self.address.collection, exact=True)).count

    def there(self, positions: Sequence[int]) -> set[int]:
        """Return those of the positions that hold a passage."""
        found = self.ask(lambda client: client.retrieve(self.address.collection, positions, with_payload=False))
        return {int(point.id) for point in found}

    def put(self, points: Sequence[models.PointStruct]) -> None:
        """Write passages with their vectors."""
        self.ask(lambda client: client.upsert(self.address.collection, list(points)))

    def passages(self, count: int) -> Iterator[Passage]:
        """Yield the passages at the first so many positions."""
        name = self.address.collection
        for positions in batched(range(count), _PAGE):
            found = self.ask(lambda client, some=positions: client.retrieve(name, some))  # type: ignore[misc]
            yield from map(passage_from_point, sorted(found, key=lambda point: int(point.id)))

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        """Return the points that each request finds."""
        found = self.ask(lambda client: client.query_batch_points(self.address.collection, requests))
        return [one.points for one in found]
