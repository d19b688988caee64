"""A collection of Qdrant: every request to it, bounded in time, sent again after a failure in passing, or named."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from ...common.errors import IndexRefused, QuestreeError, needs_extra
from ...common.forks import renew_in_forks
from ..indexes.contents import FORMAT, Manifest
from ..passage import Passage
from ..serving.access import is_loopback
from ..serving.remote_requests import TRANSIENT, RemoteError, RemoteSettings, TransientFault, retried
from .address import KEY_VARIABLE, QdrantAddress
from .embedded import hasten, is_folder, open_folder
from .layout import TOKENS, WORDS, QdrantSettings, layout
from .words import Words

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

T = TypeVar("T")

_KEY = "questree"
"""The name of what we keep in the collection's metadata, which Qdrant has since 1.16."""
_OLDEST_SERVER = (1, 16)
_PAGE = 1_000
_MADE_FOR = "index"
"""The field of a point that holds the fingerprint of the index which it was made for."""


class NoCollection(RemoteError):
    """A server that has no collection of the name."""


class State(BaseModel):
    """What a collection holds, as its metadata say.

    Attributes:
        manifest: of the index that it is, or will be.
        finished: whether all of it is there.
        base: the index to which passages are being added; None if it is built from nothing.
    """

    model_config = ConfigDict(frozen=True)

    manifest: Manifest
    finished: bool = False
    base: Manifest | None = None


@dataclass(frozen=True)
class Point:
    """What is stored for a passage; ``rows`` is (tokens, dim), an array of numpy."""

    position: int
    passage: Passage
    words: Words
    rows: Any


class Collection:
    """A collection on a server or in a folder; it need not exist yet. Safe in several threads.

    Args:
        address: of it.
        settings: patience and bounds of requests to a server.
        wait: called with the seconds of each pause.

    Raises:
        QuestreeError: if Qdrant's client is absent, or another process has the folder.
        RemoteError: if the server does not answer, or is too old.
    """

    def __init__(
        self,
        address: QdrantAddress,
        settings: RemoteSettings | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        with needs_extra("qdrant"):
            import qdrant_client  # noqa: F401
        self.address, self.settings = address, settings or RemoteSettings()
        self._wait = wait
        self.renew()
        if address.folder is None:
            renew_in_forks(self)
            self._check_server()

    @classmethod
    def held(
        cls,
        address: str,
        settings: RemoteSettings | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> tuple[Collection, State]:
        """Return the collection at an address, and what it holds.

        Raises:
            IndexRefused: as `state`; also if there is none.
            QuestreeError, RemoteError: as `Collection`.
        """
        collection = cls(QdrantAddress.parse(address), settings, wait)
        if (state := collection.state()) is not None:
            return collection, state
        raise IndexRefused(f"There is no index at {address}. Build one: questree index CORPUS --engine {address}")

    def renew(self) -> None:
        """Begin with no connections; those of another process are not used."""
        self._connected: QdrantClient | None = None

    @property
    def _client(self) -> QdrantClient:
        """Return the client. Opening it makes a folder where there is none, so it is opened when it is first used."""
        if self._connected is None:
            folder = self.address.folder
            self._connected = _server(self.address.server, self.settings) if folder is None else open_folder(folder)
        return self._connected

    def ask(self, what: Callable[[QdrantClient], T]) -> T:
        """Return what a request to the client returns.

        Raises:
            RemoteError: if no attempt was answered, the request was refused, or the answer cannot be understood.
            QuestreeError: if the folder cannot be read or written.
        """
        if self.address.folder is not None:
            return self._ask_folder(what)
        server = self.address.server
        return retried(
            partial(self._attempt, what),
            self.settings,
            self._wait,
            server=f"Qdrant at {server}",
            advice=f"See that it runs: {server}/readyz",
        )

    def _ask_folder(self, what: Callable[[QdrantClient], T]) -> T:
        try:
            return what(self._client)
        except (OSError, sqlite3.Error) as problem:
            raise QuestreeError(
                f"{self.address} cannot be read or written: {problem}. Make room, or name another folder; "
                "what was written before is there."
            ) from problem

    def _attempt(self, what: Callable[[QdrantClient], T]) -> T:
        import httpx
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            return what(self._client)
        except ResourceExhaustedResponse as busy:
            raise TransientFault(f"HTTP 429: {busy}", busy.retry_after_s) from busy
        except UnexpectedResponse as refused:
            raise self._refusal(refused.status_code or 0, refused.content) from refused
        except (ResponseHandlingException, ValueError) as failed:
            problem = getattr(failed, "source", failed)
            if isinstance(problem, httpx.RequestError):
                raise TransientFault(f"{type(problem).__name__}: {problem}") from failed
            raise RemoteError(
                f"{self.address.server} gave an answer that qdrant-client {version('qdrant-client')} does not "
                f"understand ({_first_line(problem)}). See that it is Qdrant, of the same minor version or the next."
            ) from failed

    def _refusal(self, status: int, body: bytes) -> Exception:
        fault = f"HTTP {status}: {_first_line(body.decode(errors='replace'))}"
        if status in TRANSIENT:
            return TransientFault(fault)
        if status == 404:
            return NoCollection(f"There is no collection {self.address.collection} at {self.address.server}.")
        advice = f" Put its key into {KEY_VARIABLE}." if status in (401, 403) else ""
        return RemoteError(f"Qdrant at {self.address.server} refused the request ({fault}).{advice}")

    def _check_server(self) -> None:
        told = self.ask(lambda client: client.info().version)
        if _numbers(told) < _OLDEST_SERVER:
            raise RemoteError(
                f"Qdrant at {self.address.server} is of version {told}, and 1.16 is the first that keeps what questree "
                "writes with a collection. Upgrade it."
            )

    def state(self) -> State | None:
        """Return what the collection holds, or None if there is no collection.

        Raises:
            IndexRefused: if it is foreign, or another version of questree wrote it.
            RemoteError: as `ask`.
        """
        name, folder = self.address.collection, self.address.folder
        if folder is not None and not (is_folder(folder) and self._client.collection_exists(name)):
            return None
        try:
            config = self.ask(lambda client: client.get_collection(name)).config
        except NoCollection:
            return None
        try:
            state = State.model_validate_json((config.metadata or {})[_KEY])
        except (KeyError, TypeError, ValidationError):
            raise IndexRefused(
                f"{self.address} is no index of questree's, or damaged: it is left as it is. Name another collection."
            ) from None
        if state.manifest.format != FORMAT:
            raise IndexRefused(f"{self.address} was written by another version of questree. Build it again.")
        return state

    def create(self, dim: int, settings: QdrantSettings, state: State) -> None:
        """Make the collection, empty."""
        from qdrant_client import models

        name, metadata = self.address.collection, {_KEY: state.model_dump_json()}
        try:
            self.ask(lambda client: client.create_collection(name, metadata=metadata, **layout(dim, settings)))
        except RemoteError:
            made = self.state()  # an attempt whose answer was lost may have made it: the next one is refused
            if made is None or made.manifest.fingerprint != state.manifest.fingerprint:
                raise
        if self.address.folder is not None:
            hasten(self._client)
        else:
            self.ask(lambda client: client.create_payload_index(name, _MADE_FOR, models.PayloadSchemaType.KEYWORD))

    def mark(self, state: State) -> None:
        """Write what the collection holds."""
        metadata = {_KEY: state.model_dump_json()}
        self.ask(lambda client: client.update_collection(self.address.collection, metadata=metadata))

    def drop(self) -> None:
        """Remove the collection."""
        self.ask(lambda client: client.delete_collection(self.address.collection))

    def count(self, index: str) -> int:
        """Return how many points were made for an index."""
        from qdrant_client import models

        made = models.Filter(must=[_made_for(index)])
        return self.ask(lambda client: client.count(self.address.collection, made, exact=True)).count

    def made_for(self, positions: Sequence[int]) -> dict[int, str]:
        """Return, of the passages at these positions that are there, for which index each was made."""
        found = self.ask(lambda client: client.retrieve(self.address.collection, positions, with_payload=[_MADE_FOR]))
        return {int(point.id): str((point.payload or {}).get(_MADE_FOR)) for point in found}

    def put(self, points: Sequence[Point], index: str) -> None:
        """Write passages with their vectors, over those that have the positions."""
        from qdrant_client import models

        made = [
            models.PointStruct(
                id=point.position,
                vector={
                    TOKENS: point.rows.tolist(),
                    WORDS: models.SparseVector(indices=point.words[0], values=point.words[1]),
                },
                payload={**point.passage.model_dump(include={"id", "title", "text"}), _MADE_FOR: index},
            )
            for point in points
        ]
        self.ask(lambda client: client.upsert(self.address.collection, made))

    def take_over(self, base: str, index: str) -> None:
        """Let the points that were made for an index be those of a larger one."""
        from qdrant_client import models

        old = models.Filter(must=[_made_for(base)])
        self.ask(lambda client: client.set_payload(self.address.collection, {_MADE_FOR: index}, points=old))

    def drop_others(self, index: str) -> None:
        """Remove the points that were made for another index."""
        from qdrant_client import models

        others = models.FilterSelector(filter=models.Filter(must_not=[_made_for(index)]))
        self.ask(lambda client: client.delete(self.address.collection, others))

    def passages(self, count: int) -> Iterator[Passage]:
        """Yield the passages at the first so many positions."""
        for first in range(0, count, _PAGE):
            positions = range(first, min(first + _PAGE, count))
            found = self.ask(lambda client, some=positions: client.retrieve(self.address.collection, some))  # type: ignore[misc]
            by_position = {int(point.id): point for point in found}
            for position in positions:
                if position not in by_position:
                    raise IndexRefused(f"{self.address} is damaged: passage {position} is missing. Build it again.")
                yield self.passage(by_position[position])

    def passage(self, point: models.Record | models.ScoredPoint) -> Passage:
        """Return the passage of a point.

        Raises:
            IndexRefused: if it is none of ours.
        """
        try:
            return Passage.model_validate({**(point.payload or {}), "score": getattr(point, "score", 0.0)})
        except ValidationError:
            raise IndexRefused(f"{self.address} holds a point that questree did not write: {point.id}.") from None

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        """Return the points that each request finds."""
        found = self.ask(lambda client: client.query_batch_points(self.address.collection, requests))
        return [one.points for one in found]


def _made_for(index: str) -> models.FieldCondition:
    from qdrant_client import models

    return models.FieldCondition(key=_MADE_FOR, match=models.MatchValue(value=index))


def _server(server: str, settings: RemoteSettings) -> QdrantClient:
    from qdrant_client import QdrantClient

    return QdrantClient(
        url=server,
        api_key=os.environ.get(KEY_VARIABLE) or None,
        check_compatibility=False,  # it asks in a thread of its own, and only warns
        timeout=max(1, round(settings.answer_seconds)),
        trust_env=not is_loopback(urlsplit(server).hostname or ""),  # a proxy leads away from this machine
    )


def _numbers(told: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", told)[:2]))


def _first_line(problem: object) -> str:
    """Return the beginning of an error, in one line."""
    return " ".join(str(problem).split())[:200]
