"""questree serve-retriever"""

from typing import Annotated

import typer

from ..common.errors import needs_extra
from . import options
from .screen import echo


def serve_retriever(
    index: Annotated[str, typer.Argument(help="What to serve: an index's folder, or all else that --retriever takes.")],
    host: options.Host = "127.0.0.1",
    port: options.Port = 8893,
    token_file: options.TokenFile = None,
    together: Annotated[int, typer.Option(min=1, help="At most so many queries in one call of the index.")] = 64,
    max_queries: Annotated[int, typer.Option(min=1, help="At most so many queries in one request.")] = 256,
    max_passages: Annotated[
        int,
        typer.Option(min=1, help="At most so many passages for a query: 100 for a fusion of indexes, 50 for --rerank."),
    ] = 1_000,
    max_bytes: Annotated[int, typer.Option(min=1_000, help="At most so many bytes in a request.")] = 4 * 2**20,
    concurrency: Annotated[
        int, typer.Option(min=1, help="At most so many connections at a time; what comes beyond is answered with 503.")
    ] = 512,
) -> None:
    """Serve an index to many workers: concurrent queries share a call. It also answers dspy.ColBERTv2."""
    from ..retrieval import open_retriever
    from ..retrieval.serving.access import check_binding, read_token

    with needs_extra("serve"):
        from ..retrieval.serving.app import SearchLimits, create_app
        from ..retrieval.serving.listener import serve
        from ..retrieval.serving.server_limits import ServerLimits

    token = read_token(token_file)
    check_binding(host, token)  # before an index is loaded
    retriever = open_retriever(index)
    app = create_app(
        retriever,
        limits=ServerLimits(body=max_bytes, token=token),
        search_limits=SearchLimits(queries=max_queries, passages=max_passages, together=together),
    )

    def ready(address: str) -> None:
        echo(
            f"{retriever.name}, {retriever.fingerprint}, at {address}; use it with --retriever {address}, "
            "stop it with Ctrl-C"
        )

    serve(app, host, port, token=token, ready=ready, connections=concurrency)
