"""questree simulate"""

from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..settings import RunSettings

app = typer.Typer(help="The simulated LM: for rehearsals, never for claims.", no_args_is_help=True)


def serve(
    settings: "RunSettings",
    host: Annotated[str, typer.Option(help="Loopback, unless you say otherwise.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8321,
) -> None:
    """Serve it at an OpenAI-compatible address, to exercise the real network path."""
    from ..parts import build_lm
    from ..retrieval.errors import QuestreeError
    from ..simulate import is_simulated
    from ..simulate import serve as serve_engine

    model = build_lm(settings)
    if not is_simulated(model):
        raise QuestreeError(f"--lm {settings.lm} is no simulated LM; serve 'simulated' or 'recorded:FILE'.")
    serve_engine(model.engine, host=host, port=port)


app.command()(options.with_settings(serve, only=("task", "lm", "config")))
