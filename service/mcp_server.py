"""The programs for clients of the Model Context Protocol: the tools ask and search, and found passages as resources."""

# annotations are not postponed here: the SDK, which reads a tool's, would not find the names of the programs

from collections.abc import Iterable
from contextlib import aclosing
from typing import Annotated, Any
from urllib.parse import quote

import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel, Field
from starlette.applications import Starlette

from ..common.errors import QueryError
from ..common.secrets import without_secrets
from ..common.text import printable
from ..pages.asked_question import AskedQuestion
from ..programs.program import MAX_QUESTION_CHARACTERS
from ..programs.streams import NodeGrown, new_line
from ..retrieval import Passage, Retriever
from ..retrieval.base import check_search
from ..retrieval.serving.server_limits import Refused, RequestLimits, ServerLimits
from ..signatures import AnswerStyle
from .mcp_start import bare_server
from .pending_question import Waiting
from .questions import Service

_MOST_PASSAGES = 10_000
"""Found passages that can be read as resources; beyond, those that were not found for longest are forgotten."""
_MOST_SESSIONS, _SESSION_SECONDS = 500, 600.0
"""A session takes some 30 KB, and lasts so long without a request."""

_Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARACTERS)]


class FoundPassage(BaseModel):
    """A passage, the address at which it can be read again as a resource, and where it stands (see `Passage`)."""

    uri: str
    title: str
    text: str
    source: str
    start: int | None
    end: int | None


class FoundAnswer(BaseModel):
    """An answer whose marks ``[n]`` stand for the n-th reference."""

    answer: str
    answers: tuple[str, ...]
    final_content: str
    references: list[FoundPassage]


def mcp_server(service: Service, retriever: Retriever | None, server: MCPServer[Any] | None = None) -> MCPServer[Any]:
    """Return the server with its tools, by default a new one; without a retriever there is no tool ``search``."""
    server = server or bare_server()
    passages: dict[str, Passage] = {}

    def shown(found: Iterable[Passage]) -> list[FoundPassage]:
        listed = []
        for passage in found:
            passages.pop(passage.id, None)  # found anew: it becomes the latest
            passages[passage.id] = passage
            uri = f"passage://{quote(passage.id, safe='')}"
            told = passage.model_dump(include={"title", "text", "source", "start", "end"})
            listed.append(FoundPassage(uri=uri, **told))
        for id in list(passages)[: max(0, len(passages) - _MOST_PASSAGES)]:
            del passages[id]
        return listed

    program_names = Field(description="The method that answers.", json_schema_extra={"enum": [*service.names]})

    @server.tool()
    async def ask(
        question: _Question,
        context: Context[Any, Any],
        program: Annotated[str, program_names] = service.names[0],
        answer_style: AnswerStyle = "short",
    ) -> FoundAnswer:
        """Answer a question that needs several facts, by searching step by step, and cite a passage for each fact."""
        asked = await _answer_of(service, context, question, program, answer_style)
        found = {"answers": asked.answers, "final_content": asked.told, "references": shown(asked.references)}
        return FoundAnswer.model_validate(found | {"answer": asked.answer})

    @server.resource("passage://{id}", mime_type="text/plain")
    def passage(id: str) -> str:
        """Return a passage that was found, with its title and its source."""
        found = passages.get(id)  # the SDK has undone the quoting
        if found is None:
            raise ResourceNotFoundError("no passage of this address was found lately; search again")
        return "\n\n".join(filter(None, (found.title, found.source, found.text)))

    if retriever is not None:
        searched = retriever

        @server.tool()
        async def search(query: _Question, k: Annotated[int, Field(ge=1, le=100)] = 5) -> list[FoundPassage]:
            """Return the passages that fit a query best, the best first."""
            try:
                check_search([query], k)
            except QueryError as problem:
                raise ToolError(str(problem)) from None
            found = await anyio.to_thread.run_sync(searched, query, k)
            return shown(without_secrets(found) if searched.remote else found)

    return server


def mcp_app(server: MCPServer[Any], token: str | None = None) -> Starlette:
    """Return the server as an application, at ``/mcp``. Without a token it serves this machine only."""
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard checks host and origin
    app = server.streamable_http_app(
        transport_security=unguarded, max_sessions=_MOST_SESSIONS, session_idle_timeout=_SESSION_SECONDS
    )
    app.add_middleware(RequestLimits, limits=ServerLimits(token=token))
    return app


async def _answer_of(
    service: Service, context: Context[Any, Any], question: str, program: str, answer_style: AnswerStyle
) -> AskedQuestion:
    """Ask a question, report each node as progress, and return it answered; a client that cancels stops it.

    Raises:
        ToolError: there is no room, no such program, or no answer.
    """
    http = context.request_context.request
    client = getattr(getattr(http, "client", None), "host", "")
    try:
        taken = service.ask(question, client=client, program=program or None, answer_style=answer_style)
    except Refused as refused:
        raise ToolError(str(refused)) from None
    steps, lines = 0, set[str]()
    async with aclosing(taken.follow()) as events:
        async for event in (one async for told in events for _, one in told):
            said = new_line(event, lines) if isinstance(event, NodeGrown) else None
            if isinstance(event, Waiting):
                said = f"number {event.place} in the queue"
            if said:
                steps += 1
                await context.report_progress(steps, message=printable(said))
    if taken.asked.state != "answered":
        raise ToolError(f"no answer ({taken.asked.failure or 'stopped'})")
    return taken.asked
