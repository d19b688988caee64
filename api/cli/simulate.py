"""questree simulate"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..settings import RunSettings

app = typer.Typer(help="The simulated LM: for rehearsals, never for claims.", no_args_is_help=True)


def serve(
    settings: "RunSettings",
    host: Annotated[str, typer.Option(help="Loopback, unless you say otherwise; then it needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8321,
    token_file: Annotated[
        Path | None, typer.Option(help="File of the key that clients must bring. Default: QUESTREE_TOKEN, if set.")
    ] = None,
) -> None:
    """Serve it at an OpenAI-compatible address, to exercise the real network path."""
    from ..common.errors import QuestreeError
    from ..parts import Parts
    from ..retrieval.serving.limits import Limits, read_token
    from ..simulate import is_simulated
    from ..simulate import serve as serve_engine

    model = Parts(settings).lm
    if not is_simulated(model):
        raise QuestreeError(f"--lm {settings.lm} is no simulated LM; serve 'simulated' or 'recorded:FILE'.")

    def ready(address: str) -> None:
        typer.echo(f"{model.model} at {address}/v1; use it with --lm openai/simulated --api-base {address}/v1")

    serve_engine(model.engine, host=host, port=port, limits=Limits(token=read_token(token_file)), ready=ready)


options.add_command(app, serve, only=("task", "lm"))
