"""An MCP server before it has tools: it greets an agent while the programs and the index are loaded."""

from threading import Event
from typing import Any, cast

import anyio.to_thread
from mcp.server.mcpserver import MCPServer

from ..common.manifests import installed_versions


def bare_server(greeted: Event | None = None, loaded: Event | None = None) -> MCPServer[Any]:
    """Return a server that is greeted at once; the first other request sets ``greeted``, and waits for ``loaded``."""

    async def wait(request: Any, answer: Any) -> Any:
        if greeted and loaded and request.method not in ("initialize", "server/discover"):
            greeted.set()
            await anyio.to_thread.run_sync(loaded.wait)
        return await answer(request)

    version = installed_versions(["questree"])["questree"]
    about = "Answers questions that need several facts, and cites."
    server: MCPServer[Any] = MCPServer("questree", version=version, instructions=about)
    server.middleware.append(cast(Any, wait))
    return server
