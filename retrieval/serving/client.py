"""The client of the retriever server: a retriever like any other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from ...common.forks import renew_in_forks
from ..base import batched, check_search, reopened
from ..contracts import Retriever
from ..passage import Passage
from .access import TOKEN_VARIABLE, is_loopback, read_token
from .remote_requests import (
    QUERIES_TOGETHER,
    TRANSIENT,
    RemoteError,
    RemoteSettings,
    TransientFault,
    one_line,
    retried,
)
from .wire import Compare, Health, Likeness, Results, SearchRequest

Model = TypeVar("Model", bound=BaseModel)

_CONNECTIONS = 64
"""The most connections at a time; a thread that finds none free waits."""
_TEXTS_TOGETHER = 64
"""Texts, on each side, that are compared by one request: some 200 KB of paragraphs."""


class RemoteRetriever(Retriever):
    """The retriever behind an address; safe in several threads.

    Its name and fingerprint are the server's, so that results do not depend on where an index is searched. An answer
    from another index than at first contact is refused. Nothing is cached here: the server remembers.

    Args:
        address: ``http://host:port``, or https. The server is asked at once what it serves.
        token: of a server that asks for one; by default that of the variable ``QUESTREE_TOKEN``.

    Raises:
        RemoteError: if it is no address, or no retriever server answers there.
    """

    remote = True

    def __init__(self, address: str, *, token: str | None = None, settings: RemoteSettings | None = None) -> None:
        self._host, self._token = _host(address), token or read_token()
        self.address, self._settings = address.rstrip("/"), settings or RemoteSettings()
        self.renew()
        renew_in_forks(self)
        self._health = self._ask(Health, "/health")
        self.name, self.fingerprint = self._health.name, self._health.fingerprint
        self.similarity = self._likeness if self._health.similarity else None
        self.place = partial(reopened, RemoteRetriever, self.address, self.fingerprint)

    def renew(self) -> None:
        """Begin with no connections; those of another process are not used."""
        import httpx

        self._client = httpx.Client(
            timeout=httpx.Timeout(self._settings.answer_seconds, connect=self._settings.connect_seconds),
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            headers={"Authorization": f"Bearer {self._token}"} if self._token else {},
            trust_env=not is_loopback(self._host),  # a proxy of the environment leads away from this machine
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, as single calls would; requests have a bounded size.

        Raises:
            QueryError: if a query is empty, or k is not positive.
            RemoteError: if no usable answer came, or a query is longer than the server takes.
        """
        checked = check_search(queries, k)
        most = min(QUERIES_TOGETHER, max(1, self._health.most_passages // k))
        return [ranking for some in batched(checked, most) for ranking in self._found(some, k)]

    def _found(self, queries: list[str], k: int) -> list[list[Passage]]:
        found = self._ask(Results, "/search", SearchRequest(queries=queries, k=k)).results
        if len(found) != len(queries):
            raise self._unusable(f"{len(found)} rankings for {len(queries)} queries")
        for ranking in found:
            if len(ranking) > k or len({passage.id for passage in ranking}) < len(ranking):
                raise self._unusable(f"more than {k} passages for a query, or one of them twice")
            if any(one.score < other.score for one, other in pairwise(ranking)):
                raise self._unusable("passages that are not in the order of their scores")
        return found

    def _likeness(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        if not texts or not others:
            return [[] for _ in texts]
        rows: list[list[float]] = []
        for some in batched(texts, _TEXTS_TOGETHER):
            parts = [self._likeness_of_few(some, part) for part in batched(others, _TEXTS_TOGETHER)]
            rows += [list(chain(*row)) for row in zip(*parts, strict=True)]
        return rows

    def _likeness_of_few(self, texts: list[str], others: list[str]) -> list[list[float]]:
        rows = self._ask(Likeness, "/similarity", Compare(texts=texts, others=others)).rows
        if [len(row) for row in rows] != [len(others)] * len(texts):
            raise self._unusable("rows that do not fit the texts compared")
        return rows

    def _ask(self, model: type[Model], path: str, message: BaseModel | None = None) -> Model:
        """Return the answer to a message, or to a request without one, as a model; refuse one of another index."""
        body = retried(
            partial(self._attempt, path, None if message is None else message.model_dump_json()),
            self._settings,
            server=f"The retriever server at {self.address}",
            advice=f"See that it runs: questree serve-retriever INDEX; its health: {self.address}/health",
        )
        try:
            answer = model.model_validate_json(body)
        except ValidationError as error:
            fault = error.errors()[0]
            raise self._unusable(f"{'.'.join(map(str, fault['loc'])) or 'answer'}: {fault['msg']}") from None
        if message is not None and (served := getattr(answer, "fingerprint", "")) != self.fingerprint:
            raise RemoteError(
                f"{self.address} now serves the index {served}, and served {self.fingerprint} when this run "
                "began: their passages must not be mixed. Serve the old index again, or start the run anew."
            )
        return answer

    def _attempt(self, path: str, content: str | None) -> bytes:
        import httpx

        method, headers = "GET" if content is None else "POST", {"Content-Type": "application/json"}
        try:
            response = self._client.request(method, self.address + path, content=content, headers=headers)
        except httpx.RequestError as problem:
            raise TransientFault(problem) from problem
        if response.status_code == 200:
            return response.content
        fault = f"HTTP {response.status_code}: {_message(response.content)}"
        if response.status_code in TRANSIENT:
            asked = response.headers.get("Retry-After", "").strip()
            raise TransientFault(fault, float(asked) if asked.isdecimal() else None)
        advice = "See that it is the address of a retriever server."
        if response.status_code in (401, 403):
            advice = f"Put the server's token into {TOKEN_VARIABLE}."
        raise RemoteError(f"{self.address} refused the request ({fault}). {advice}")

    def _unusable(self, what: str) -> RemoteError:
        return RemoteError(
            f"{self.address} gave an answer that cannot be used ({what}). See that it is a retriever server of this "
            "version of questree (questree serve-retriever) and that no proxy stands between."
        )


def _host(address: str) -> str:
    """Return the host of an address, or refuse the address."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # which is read, and refused, only now
    except ValueError:
        parts = urlsplit("")
    if "@" in parts.netloc:
        raise RemoteError(f"Give no name or password in an address: a server's token goes into {TOKEN_VARIABLE}.")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise RemoteError(f"{address} is no address of a retriever server. Write http://host:port.")
    return parts.hostname


def _message(body: bytes) -> str:
    """Return the message of an error, cut short."""
    try:
        return one_line(json.loads(body)["error"]["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return one_line(body.decode(errors="replace"))
