"""The application that serves a retriever to many workers at a time."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Body, FastAPI
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from ...common.errors import QueryError
from ..base import check_search
from ..contracts import Retriever, check_found
from ..passage import Passage
from .batcher import Batcher, Rankings
from .server_limits import Refused, ServerLimits, limited_app
from .wire import Compare, Health, Likeness, Results, SearchRequest

logger = logging.getLogger(__name__)


MOST_PASSAGES = 4_096
"""In an answer, of all its queries together."""


def create_app(
    retriever: Retriever, *, limits: ServerLimits | None = None, most_passages: int = MOST_PASSAGES
) -> FastAPI:
    """Return the application: ``/search``, ``/similarity`` and ``/health`` for `RemoteRetriever`, ``/`` for others.

    For ColBERT's clients (``dspy.ColBERTv2``) ``/`` and ``/api/search`` answer ``?query=…&k=…``, and the same posted as
    JSON, as ColBERT's own server does. They give passages in the form that a prompt may hold (`Passage.shown`): such a
    client puts them into prompts as they are.

    Args:
        retriever: its ``batch`` is called by one thread at a time.
        limits: of every request.
        most_passages: in an answer, of all its queries together.
    """
    batcher = Batcher(retriever.batch)
    app = limited_app("Retriever", limits or ServerLimits(), openapi_url=None)

    async def found(queries: Sequence[str], k: int) -> Rankings:
        if (asked := k * len(queries)) > most_passages:
            most = f"{most_passages} are the most in one request"
            raise Refused(400, f"{asked} passages were asked for; {most}", "too_many")
        try:
            checked = check_search(queries, k)
        except QueryError as problem:
            raise Refused(400, str(problem), "invalid_query") from None
        with _faults_told():
            return [check_found(ranking) for ranking in await batcher.search(checked, k)]

    @app.post("/search")
    async def search(asked: SearchRequest) -> Response:
        """Return the passages that are found for each query."""
        return _json(Results(fingerprint=retriever.fingerprint, results=await found(asked.queries, asked.k)))

    @app.post("/similarity")
    async def similarity(asked: Compare) -> Response:
        """Return how alike texts are, if the retriever can say so."""
        compare = retriever.similarity
        if compare is None:
            raise Refused(404, f"{retriever.name} cannot compare texts", "no_similarity")
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
                most_passages=most_passages,
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
    async def colbert_posted(query: Annotated[str, Body()], k: Annotated[int, Body()] = 10) -> Response:
        """Return the same for a query that is posted."""
        return await colbert(query, k)

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


def _colbert_answer(ranking: list[Passage], fingerprint: str) -> JSONResponse:
    highest = max((passage.score for passage in ranking), default=0.0)
    weights = [math.exp(passage.score - highest) for passage in ranking]
    topk: list[dict[str, Any]] = []
    for rank, (passage, weight) in enumerate(zip(ranking, weights, strict=True), start=1):
        text = passage.shown()  # posting clients look for it as long_text, the others add that themselves
        shown = {"text": text, "long_text": text, "pid": passage.id, "rank": rank, "score": passage.score}
        topk.append({**shown, "prob": weight / sum(weights)})
    return JSONResponse({"topk": topk, "fingerprint": fingerprint})
