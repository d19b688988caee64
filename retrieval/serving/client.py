"""The client of the retriever server: a retriever like any other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise

from ...common.errors import QueryError
from ..base import BaseRetriever, check_search
from ..contracts import Similarity
from ..dense import DenseRetriever
from ..late_interaction.exact import ExactRetriever
from ..late_interaction.plaid import PlaidRetriever
from ..passage import Passage
from .exchange import Exchange, RemoteError, RemoteSettings, unusable
from .server_limits import read_token
from .wire import Compare, Health, Likeness, Results, Search

FIND_ALWAYS = (ExactRetriever.name, PlaidRetriever.name, DenseRetriever.name)
"""Names of retrievers that find passages for any query. Others may find none: by words, fused, filtered, one's own."""


class RemoteRetriever(BaseRetriever):
    """The retriever behind an address. Made by ``connect``; safe in several threads.

    Its name and fingerprint are the server's, so that results do not depend on where an index is searched. An answer
    from another index than at first contact is refused. Nothing is cached here: the server remembers.
    """

    remote = True

    def __init__(self, exchange: Exchange, health: Health) -> None:
        self.name, self.fingerprint, self.address = health.name, health.fingerprint, exchange.address
        self._exchange, self._health = exchange, health
        self.place = partial(reconnect, self.address, self.fingerprint)

    @classmethod
    def connect(
        cls,
        address: str,
        *,
        token: str | None = None,
        settings: RemoteSettings | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> RemoteRetriever:
        """Ask the server at an address what it serves, and return its retriever.

        Args:
            address: ``http://host:port``, or https.
            token: of a server that asks for one.
            settings: timeouts, retries and bounds; by default those of `RemoteSettings`.
            wait: called with the seconds of each pause.

        Raises:
            RemoteError: if it is no address, or no retriever server answers there.
        """
        exchange = Exchange(address, token, settings or RemoteSettings(), wait)
        return cls(exchange, exchange.first_contact())

    @property
    def similarity(self) -> Similarity | None:
        """Return the comparison of texts by the server's retriever, or None if it has none."""
        return self._similarity if self._health.similarity else None

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, as single calls would; requests have a bounded size.

        Raises:
            QueryError: if a query is empty or longer than the server takes, or k is not positive.
            RemoteError: if no usable answer came.
        """
        checked = check_search(queries, k)
        return [ranking for some in self._requests(checked, k) for ranking in self._found(some, k)]

    def close(self) -> None:
        """Close the connections."""
        self._exchange.close()

    def _requests(self, queries: list[str], k: int) -> Iterator[list[str]]:
        """Yield the queries of each request, in their order."""
        together = max(1, self._health.most_passages // k)
        most = min(self._exchange.settings.queries_together, self._health.most_queries, together)
        return self._parts(queries, most, self._room)

    @property
    def _room(self) -> int:
        """Return the bytes that a request has for its texts."""
        return self._health.most_bytes - 100  # of the rest of the body

    def _parts(self, texts: Sequence[str], most: int, room: int) -> Iterator[list[str]]:
        """Yield the texts in their order, so many together, of so many bytes, at most."""
        some: list[str] = []
        size = 0
        for text in texts:
            length = len(json.dumps(text)) + 2
            if length > room:
                raise QueryError(f"A text of {length:,} bytes is more than {self.address} takes ({room:,}). Cut it.")
            if some and (len(some) == most or size + length > room):
                yield some
                some, size = [], 0
            some.append(text)
            size += length
        if some:
            yield some

    def _found(self, queries: list[str], k: int) -> list[list[Passage]]:
        answer = self._exchange.ask(Results, "/search", Search(queries=queries, k=k))
        self._check_index(answer.fingerprint)
        if len(answer.results) != len(queries):
            raise self._refused(f"{len(answer.results)} rankings for {len(queries)} queries")
        rankings = [[found.passage() for found in ranking] for ranking in answer.results]
        for ranking in rankings:
            self._check_ranking(ranking, k)
        return rankings

    def _check_ranking(self, ranking: list[Passage], k: int) -> None:
        if not ranking and self.name in FIND_ALWAYS:
            raise self._refused("no passage for a query, though its index finds some for any")
        if len(ranking) > k:
            raise self._refused(f"{len(ranking)} passages where {k} were asked for")
        if len({passage.id for passage in ranking}) < len(ranking):
            raise self._refused("the same passage twice for a query")
        if any(one.score < other.score for one, other in pairwise(ranking)):
            raise self._refused("passages that are not in the order of their scores")

    def _similarity(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        if not texts or not others:
            return [[] for _ in texts]
        most, room = self._health.most_queries, self._room // 2
        columns = list(self._parts(others, most, room))
        return [row for some in self._parts(texts, most, room) for row in self._rows(some, columns)]

    def _rows(self, texts: list[str], columns: Sequence[list[str]]) -> list[list[float]]:
        """Return a row for each text, from one request for each part of the other texts."""
        parts = [self._likeness(texts, others) for others in columns]
        return [list(chain(*row)) for row in zip(*parts, strict=True)]

    def _likeness(self, texts: list[str], others: list[str]) -> list[list[float]]:
        answer = self._exchange.ask(Likeness, "/similarity", Compare(texts=texts, others=others))
        self._check_index(answer.fingerprint)
        if [len(row) for row in answer.rows] != [len(others)] * len(texts):
            raise self._refused("rows that do not fit the texts compared")
        return answer.rows

    def _check_index(self, fingerprint: str) -> None:
        if fingerprint != self.fingerprint:
            raise RemoteError(
                f"{self.address} now serves the index {fingerprint}, and served {self.fingerprint} when this run "
                "began: their passages must not be mixed. Serve the old index again, or start the run anew."
            )

    def _refused(self, what: str) -> RemoteError:
        return unusable(self.address, what)


def reconnect(address: str, fingerprint: str) -> RemoteRetriever:
    """Return the retriever of the server that a pickle names by its address; the token comes from the environment.

    Raises:
        RemoteError: as `RemoteRetriever.connect`; or the server has another index by now.
    """
    retriever = RemoteRetriever.connect(address, token=read_token())
    retriever._check_index(fingerprint)
    return retriever
