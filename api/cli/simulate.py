"""Use the simulated LM: for rehearsals, never for claims."""

from typing import Annotated

import typer

from ..common.errors import QuestreeError, needs_extra
from ..settings import RunSettings
from . import options
from .screen import echo

app = typer.Typer(help=__doc__, no_args_is_help=True)


def serve(
    settings: Annotated[RunSettings, "task lm"],
    host: options.Host = "127.0.0.1",
    port: options.Port = 8321,
    token_file: options.TokenFile = None,
) -> None:
    """Serve the simulated LM at an OpenAI-compatible address, to exercise the real network path."""
    from ..lm.models import is_simulated
    from ..parts import Parts
    from ..retrieval.serving.access import read_token

    with needs_extra("serve"):
        from ..retrieval.serving.listener import check_address, serve_app
        from ..retrieval.serving.server_limits import ServerLimits
        from ..simulate import create_app

    token = read_token(token_file)
    check_address(host, port, token)
    model = Parts(settings).lm
    if not is_simulated(model):
        raise QuestreeError(f"--lm {settings.lm} is no simulated LM; serve 'simulated' or 'recorded:FILE'.")

    def ready(address: str) -> None:
        echo(f"{model.model} at {address}/v1; use it with --lm openai/simulated --api-base {address}/v1")

    serve_app(create_app(model.engine, limits=ServerLimits(token=token)), host, port, token=token, ready=ready)


app.command()(options.as_command(serve))
