"""The application that serves a retriever to many workers at a time."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from ...common.errors import QueryError
from ..base import check_search
from ..contracts import Retriever, check_found
from ..passage import Passage
from .batcher import Batcher, Rankings
from .server_limits import Refused, ServerLimits, guarded
from .wire import ColbertQuery, Compare, Health, Likeness, Results, Search

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchLimits:
    """How much one request may ask for, and how requests are gathered.

    Attributes:
        passages: the most for each of them (k).
        in_answer: the most for all of them together; never fewer than ``passages``.
    """

    queries: int = 256
    passages: int = 1_000
    in_answer: int = 4_096
    together: int = 64

    @property
    def most_passages(self) -> int:
        """Return the most passages in an answer."""
        return max(self.in_answer, self.passages)


def create_app(
    retriever: Retriever, *, limits: ServerLimits | None = None, search_limits: SearchLimits = SearchLimits()
) -> FastAPI:
    """Return the application: ``/search``, ``/similarity`` and ``/health`` for `RemoteRetriever`, ``/`` for others.

    For ColBERT's clients (``dspy.ColBERTv2``) ``/`` and ``/api/search`` answer ``?query=…&k=…``, and the same posted as
    JSON, as ColBERT's own server does. They give passages in the form that a prompt may hold (`Passage.shown`): such a
    client puts them into prompts as they are.

    Args:
        retriever: its ``batch`` is called by one thread at a time.
        limits: of every request.
        search_limits: of a search.
    """
    most, batcher = search_limits, Batcher(retriever.batch, most=search_limits.together)
    app = guarded("Retriever", limits or ServerLimits(), openapi_url=None)

    async def found(queries: Sequence[str], k: int) -> Rankings:
        _check_size(len(queries), most.queries, "queries")
        _check_size(k, most.passages, "passages for a query")
        _check_size(k * len(queries), most.most_passages, "passages")
        try:
            checked = check_search(queries, k)
        except QueryError as problem:
            raise Refused(400, str(problem), "invalid_query") from None
        with _faults_told():
            return [check_found(ranking) for ranking in await batcher.search(checked, k)]

    @app.post("/search")
    async def search(asked: Search) -> Response:
        """Return the passages that are found for each query."""
        return _json(Results(fingerprint=retriever.fingerprint, results=await found(asked.queries, asked.k)))

    @app.post("/similarity")
    async def similarity(asked: Compare) -> Response:
        """Return how alike texts are, if the retriever can say so."""
        compare = retriever.similarity
        if compare is None:
            raise Refused(404, f"{retriever.name} cannot compare texts", "no_similarity")
        _check_size(len(asked.texts) + len(asked.others), 2 * most.queries, "texts")
        with _faults_told():
            rows = await run_in_threadpool(compare, asked.texts, asked.others)
            return _json(Likeness(fingerprint=retriever.fingerprint, rows=rows))

    @app.get("/health")
    async def health() -> Response:
        """Return what is served, and how much a request may ask for."""
        return _json(
            Health(
                name=retriever.name,
                fingerprint=retriever.fingerprint,
                passages=None if retriever.passages is None else len(retriever.passages),
                similarity=retriever.similarity is not None,
                most_queries=most.queries,
                most_passages=most.most_passages,
            )
        )

    @app.get("/")
    @app.get("/api/search")
    async def colbert(query: str, k: int = 10) -> Response:
        """Return what is found for one query, as ColBERT's server does."""
        (ranking,) = await found([query], k)
        return _colbert_answer(ranking, retriever.fingerprint)

    @app.post("/")
    @app.post("/api/search")
    async def colbert_posted(asked: ColbertQuery) -> Response:
        """Return the same for a query that is posted."""
        return await colbert(asked.query, asked.k)

    return app


def _json(answer: BaseModel) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")


@contextmanager
def _faults_told() -> Iterator[None]:
    """Turn what goes wrong in the index, or with what it found, into an answer that says so."""
    try:
        yield
    except Exception as fault:
        logger.exception("The index failed.")
        raise Refused(500, f"the index failed ({type(fault).__name__}: {fault})", "index_failed") from None


def _check_size(given: int, most: int, what: str) -> None:
    if given > most:
        raise Refused(400, f"{given} {what} were asked for; {most} are the most in one request", "too_many")


def _colbert_answer(ranking: list[Passage], fingerprint: str) -> JSONResponse:
    highest = max((passage.score for passage in ranking), default=0.0)
    weights = [math.exp(passage.score - highest) for passage in ranking]
    topk: list[dict[str, Any]] = []
    for rank, (passage, weight) in enumerate(zip(ranking, weights, strict=True), start=1):
        text = passage.shown()  # posting clients look for it as long_text, the others add that themselves
        shown = {"text": text, "long_text": text, "pid": passage.id, "rank": rank, "score": passage.score}
        topk.append({**shown, "prob": weight / sum(weights)})
    return JSONResponse({"topk": topk, "fingerprint": fingerprint})
