"""The application that serves a retriever to many workers at a time."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...common.errors import QueryError
from ...common.json_files import parse_json
from ..base import check_search
from ..contracts import Retriever
from ..passage import Passage
from .batcher import Batcher, Rankings
from .server_limits import Guard, Limits, Refused, refuse_unrouted
from .wire import Compare, Found, Health, Likeness, Results, Search

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class SearchLimits:
    """How much one request may ask for, and how requests are gathered.

    Attributes:
        queries: the most in one request.
        passages: the most for each of them (k).
        in_answer: the most for all of them together; never fewer than ``passages``.
        characters: the most of their titles and texts in an answer.
        together: the most queries in one call of the index.
        window: seconds to wait for further searches before a call; see `Batcher`.
    """

    queries: int = 256
    passages: int = 1_000
    in_answer: int = 4_096
    characters: int = 32 * 2**20
    together: int = 64
    window: float = 0.0

    @property
    def most_passages(self) -> int:
        """Return the most passages in an answer."""
        return max(self.in_answer, self.passages)


def create_app(
    retriever: Retriever, *, limits: Limits | None = None, search_limits: SearchLimits = SearchLimits()
) -> FastAPI:
    """Return the application: ``/search``, ``/similarity`` and ``/health`` for `RemoteRetriever`, ``/`` for others.

    For ColBERT's clients (``dspy.ColBERTv2``) ``/`` and ``/api/search`` answer ``?query=…&k=…``, and the same posted as
    JSON, as ColBERT's own server does. They give passages in the form that a prompt may hold (`Passage.shown`): such a
    client puts them into prompts as they are.

    Args:
        retriever: its ``batch`` is called by one thread only.
        limits: of every request.
        search_limits: of a search.
    """
    from fastapi import FastAPI
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException

    limits = limits or Limits()
    answers = _Answers(retriever, limits, search_limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(answers.batcher.close)

    app = FastAPI(title="Retriever", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.add_middleware(Guard, limits=limits)
    app.add_exception_handler(HTTPException, refuse_unrouted)
    app.add_route("/search", answers.search, methods=["POST"])
    app.add_route("/similarity", answers.similarity, methods=["POST"])
    app.add_route("/health", answers.health, methods=["GET"])
    for path in ("/", "/api/search"):
        app.add_route(path, answers.colbert, methods=["GET", "POST"])
    return app


class _Answers:
    """What each route of the application answers.

    Attributes:
        batcher: searches the retriever.
    """

    def __init__(self, retriever: Retriever, limits: Limits, search_limits: SearchLimits):
        self._retriever, self._limits, self._most = retriever, limits, search_limits
        self.batcher = Batcher(retriever.batch, most=search_limits.together, window=search_limits.window)

    async def search(self, http: Request) -> Response:
        """Return the passages that are found for each query."""
        asked = _understood(Search, await http.body())
        rankings = await self._found(asked.queries, asked.k)
        with _faults_told():
            results = [[Found.of(passage) for passage in ranking] for ranking in rankings]
            return _json(Results(fingerprint=self._retriever.fingerprint, results=results))

    async def similarity(self, http: Request) -> Response:
        """Return how alike texts are, if the retriever can say so."""
        from starlette.concurrency import run_in_threadpool

        compare = self._retriever.similarity
        if compare is None:
            raise Refused(404, f"{self._retriever.name} cannot compare texts", "no_similarity")
        asked = _understood(Compare, await http.body())
        _check_size(len(asked.texts) + len(asked.others), 2 * self._most.queries, "texts")
        with _faults_told():
            rows = await run_in_threadpool(compare, asked.texts, asked.others)
            return _json(Likeness(fingerprint=self._retriever.fingerprint, rows=rows))

    async def colbert(self, http: Request) -> JSONResponse:
        """Return what is found for one query, as ColBERT's server does."""
        query, k = _colbert_asked(await http.body() or json.dumps(dict(http.query_params)).encode())
        (ranking,) = await self._found([query], k)
        with _faults_told():
            return _colbert_answer(ranking, self._retriever.fingerprint)

    async def health(self, http: Request) -> Response:
        """Return what is served, and how much a request may ask for."""
        retriever = self._retriever
        return _json(
            Health(
                name=retriever.name,
                fingerprint=retriever.fingerprint,
                passages=None if retriever.passages is None else len(retriever.passages),
                similarity=retriever.similarity is not None,
                most_queries=self._most.queries,
                most_passages=self._most.most_passages,
                most_bytes=self._limits.body,
            )
        )

    async def _found(self, queries: Sequence[str], k: int) -> Rankings:
        _check_size(len(queries), self._most.queries, "queries")
        _check_size(k, self._most.passages, "passages for a query")
        _check_size(k * len(queries), self._most.most_passages, "passages")
        try:
            asked = check_search(queries, k)
        except QueryError as problem:
            raise Refused(400, str(problem), "invalid_query") from None
        with _faults_told():
            rankings = await asyncio.wrap_future(self.batcher.submit(asked, k))
        _check_size(_characters(rankings), self._most.characters, "characters")
        return rankings


def _json(answer: BaseModel) -> Response:
    from starlette.responses import Response

    return Response(answer.model_dump_json(), media_type="application/json")


def _understood(model: type[Model], body: bytes) -> Model:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "body"
        raise Refused(400, f"{where}: {fault['msg']}", "invalid_request") from None


@contextmanager
def _faults_told() -> Iterator[None]:
    """Turn what goes wrong in the index, or with what it found, into an answer that says so."""
    try:
        yield
    except Refused:
        raise
    except Exception as fault:
        logger.exception("The index failed.")
        raise Refused(500, f"the index failed ({type(fault).__name__}: {fault})", "index_failed") from None


def _characters(rankings: Rankings) -> int:
    return sum(len(passage.title) + len(passage.text) for ranking in rankings for passage in ranking)


def _check_size(given: int, most: int, what: str) -> None:
    if given > most:
        raise Refused(400, f"{given} {what} were asked for; {most} are the most in one request", "too_many")


def _colbert_asked(body: bytes) -> tuple[str, int]:
    """Return the query and k (10, as in ColBERT's server) of a JSON object; in an address k is a text."""
    try:
        asked = parse_json(body)
        return asked["query"], _whole(asked.get("k", 10))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refused(400, "give a query, and k as a whole number: ?query=…&k=10", "invalid_request") from None


def _whole(number: object) -> int:
    """Return a whole number that is given as such, or as a text."""
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        raise ValueError("no whole number")
    return int(number)


def _colbert_answer(ranking: list[Passage], fingerprint: str) -> JSONResponse:
    from starlette.responses import JSONResponse

    highest = max((passage.score for passage in ranking), default=0.0)
    weights = [math.exp(passage.score - highest) for passage in ranking]
    topk: list[dict[str, Any]] = []
    for rank, (passage, weight) in enumerate(zip(ranking, weights, strict=True), start=1):
        text = passage.shown()  # posting clients look for it as long_text, the others add that themselves
        shown = {"text": text, "long_text": text, "pid": passage.id, "rank": rank, "score": passage.score}
        topk.append({**shown, "prob": weight / sum(weights)})
    return JSONResponse({"topk": topk, "fingerprint": fingerprint})
