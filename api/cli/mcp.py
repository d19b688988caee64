"""questree mcp"""

from pathlib import Path
from threading import Event, Thread
from typing import Annotated

from ..common.errors import needs_extra
from ..service.service_limits import ServiceLimits
from ..settings import RunSettings
from . import options
from .screen import echo
from .serve import SERVED, service_of


def mcp(
    settings: Annotated[RunSettings, SERVED],
    programs: list[str],
    http: bool = False,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8090,
    token_file: options.TokenFile = None,
    behind_proxy: options.BehindProxy = False,
    questions: Path = Path("runs/questions"),
) -> None:
    """Serve programs to agents, by the Model Context Protocol: the tools ask and search, and passages as resources.

    Args:
        programs: Programs, as for `questree serve`.
        http: Serve at an address, not on stdin and stdout.
        questions: Folder in which every question is kept.
    """
    of_address = (host, port, token_file, behind_proxy) != ("127.0.0.1", 8090, None, False)
    said = "--host, --port, --token-file and --behind-proxy are of an address: add --http"
    options.refuse((of_address and not http, said))
    from ..experiment import Experiment
    from ..retrieval.serving.access import read_token
    from ..retrieval.serving.listener import check_address, serve_app

    with needs_extra("mcp"):
        from ..service.mcp_start import bare_server

    token = read_token(token_file) if http else None
    if http:
        check_address(host, port, token)
    server = bare_server(greeted := Event(), loaded := Event())
    asked = Thread(target=server.run, daemon=True)
    if not http:
        asked.start()  # it keeps stdout for the protocol: what libraries print goes to stderr
        greeted.wait(1)  # importing them would slow its first answer
    from ..service.mcp_server import mcp_app, mcp_server

    service = service_of(Experiment(settings), programs, questions, ServiceLimits())
    mcp_server(service, next(filter(None, (one.retriever for one in service.programs.values())), None), server)
    loaded.set()
    if not http:
        asked.join()
        return

    def ready(address: str) -> None:
        echo(f"{', '.join(service.names)} at {address}/mcp; Ctrl-C ends it")

    app = mcp_app(server, token)
    serve_app(app, host, port, token=token, ready=ready, ending=service.close, behind_proxy=behind_proxy)
