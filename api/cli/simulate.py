"""questree simulate"""

from typing import TYPE_CHECKING

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings

app = typer.Typer(help="Use the simulated LM: for rehearsals, never for claims.", no_args_is_help=True)


def serve(
    settings: "RunSettings",
    host: options.Host = "127.0.0.1",
    port: options.Port = 8321,
    token_file: options.TokenFile = None,
) -> None:
    """Serve the simulated LM at an OpenAI-compatible address, to exercise the real network path."""
    from ..common.errors import QuestreeError, needs_extra
    from ..parts import Parts
    from ..retrieval.serving.access import read_token
    from ..simulate import is_simulated

    with needs_extra("serve"):
        from ..retrieval.serving.server_limits import ServerLimits
        from ..simulate import serve as serve_engine

    model = Parts(settings).lm
    if not is_simulated(model):
        raise QuestreeError(f"--lm {settings.lm} is no simulated LM; serve 'simulated' or 'recorded:FILE'.")

    def ready(address: str) -> None:
        echo(f"{model.model} at {address}/v1; use it with --lm openai/simulated --api-base {address}/v1")

    serve_engine(model.engine, host=host, port=port, limits=ServerLimits(token=read_token(token_file)), ready=ready)


options.add_command(app, serve, only=("task", "lm"))
