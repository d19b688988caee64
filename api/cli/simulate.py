"""questree simulate"""

from __future__ import annotations

from typing import Annotated

import typer

from . import options

app = typer.Typer(help="The simulated LM: for rehearsals, never for claims.", no_args_is_help=True)


@app.command()
def serve(
    task: options.Task = None,
    lm: options.LM = None,
    host: Annotated[str, typer.Option(help="Loopback, unless you say otherwise.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    config: options.Config = None,
) -> None:
    """Serve it at an OpenAI-compatible address, to exercise the real network path."""
    from ..parts import build_lm
    from ..retrieval.errors import QuestreeError
    from ..settings import run_settings
    from ..simulate import is_simulated
    from ..simulate import serve as serve_engine

    settings = run_settings(config, task=task, lm=lm)
    model = build_lm(settings)
    if not is_simulated(model):
        raise QuestreeError(f"--lm {settings.lm} is no simulated LM; serve 'simulated' or 'recorded:FILE'.")
    serve_engine(model.engine, host=host, port=port)
