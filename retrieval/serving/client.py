"""The client of the retriever server: a retriever like any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise

from ..base import BaseRetriever, check_search
from ..contracts import Similarity
from ..dense import DenseRetriever
from ..late_interaction.exact import ExactRetriever
from ..late_interaction.plaid import PlaidRetriever
from ..passage import Passage
from .access import read_token
from .exchange import Exchange, RemoteError, RemoteSettings, unusable
from .wire import Compare, Health, Likeness, Results, Search

FIND_ALWAYS = (ExactRetriever.name, PlaidRetriever.name, DenseRetriever.name)
"""Names of retrievers that find passages for any query. Others may find none: by words, fused, filtered, one's own."""


_TEXTS_TOGETHER = 64
"""Texts, on each side, that are compared by one request: some 200 KB of paragraphs."""


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
        return cls(exchange, exchange.ask(Health, "/health"))

    @property
    def similarity(self) -> Similarity | None:
        """Return the comparison of texts by the server's retriever, or None if it has none."""
        return self._similarity if self._health.similarity else None

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, as single calls would; requests have a bounded size.

        Raises:
            QueryError: if a query is empty, or k is not positive.
            RemoteError: if no usable answer came, or a query is longer than the server takes.
        """
        checked, together = check_search(queries, k), max(1, self._health.most_passages // k)
        most = min(self._exchange.settings.queries_together, self._health.most_queries, together)
        return [ranking for some in _parts(checked, most) for ranking in self._found(some, k)]

    def close(self) -> None:
        """Close the connections."""
        self._exchange.close()

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
        most = min(_TEXTS_TOGETHER, self._health.most_queries)
        rows: list[list[float]] = []
        for some in _parts(texts, most):
            parts = [self._likeness(some, part) for part in _parts(others, most)]
            rows += [list(chain(*row)) for row in zip(*parts, strict=True)]
        return rows

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


def _parts(texts: Sequence[str], most: int) -> list[list[str]]:
    """Return the texts in their order, so many together at most."""
    return [list(texts[first : first + most]) for first in range(0, len(texts), most)]


def reconnect(address: str, fingerprint: str) -> RemoteRetriever:
    """Return the retriever of the server that a pickle names by its address; the token comes from the environment.

    Raises:
        RemoteError: as `RemoteRetriever.connect`; or the server has another index by now.
    """
    retriever = RemoteRetriever.connect(address, token=read_token())
    retriever._check_index(fingerprint)
    return retriever
