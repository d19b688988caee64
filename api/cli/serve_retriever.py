"""questree serve-retriever"""

from typing import Annotated

import typer

from ..common.errors import needs_extra
from . import options
from .screen import echo


def serve_retriever(
    index: str,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8893,
    token_file: options.TokenFile = None,
    max_passages: Annotated[int, typer.Option(min=1)] = 4_096,
    max_bytes: Annotated[int, typer.Option(min=1_000)] = 4 * 2**20,
) -> None:
    """Serve an index to many workers: concurrent queries share a call. It also answers dspy.ColBERTv2.

    Args:
        index: What to serve: an index's folder, or all else that --retriever takes.
        max_passages: At most so many passages in an answer, of all its queries together.
        max_bytes: At most so many bytes in a request.
    """
    from ..retrieval import open_retriever
    from ..retrieval.serving.access import read_token

    with needs_extra("serve"):
        from ..retrieval.serving.app import create_app
        from ..retrieval.serving.listener import check_address, serve_app
        from ..retrieval.serving.server_limits import ServerLimits

    token = read_token(token_file)
    check_address(host, port, token)  # before an index is loaded
    retriever = open_retriever(index)
    app = create_app(retriever, limits=ServerLimits(body=max_bytes, token=token), most_passages=max_passages)

    def ready(at: str) -> None:
        echo(f"{retriever.name}, {retriever.fingerprint}, at {at}; use it with --retriever {at}, stop it with Ctrl-C")

    serve_app(app, host, port, token=token, ready=ready)
