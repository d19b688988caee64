"""The command line. One file a command; heavy libraries are imported by the command that needs them."""

from __future__ import annotations

import logging
import sys

import typer
from rich.console import Console

from ..retrieval.errors import QuestreeError
from . import ask, compile, demo, evaluate, index, show, simulate

app = typer.Typer(
    name="questree",
    help="Answer questions that need several facts; show each step and cite the passage behind it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (demo.demo, index.index, compile.compile, evaluate.evaluate, ask.ask, show.show):
    app.command()(command)
app.add_typer(simulate.app, name="simulate")


@app.callback()
def _shared(debug: bool = typer.Option(False, "--debug", help="Show tracebacks and log what happens.")) -> None:
    logging.basicConfig(level=logging.INFO if debug else logging.WARNING, format="%(name)s: %(message)s")


def main() -> None:
    """Run a command. A mistake that the user can put right is one line and exit code 2."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    errors = Console(stderr=True)
    try:
        app(args=["--debug", *arguments] if debug and arguments else arguments)
    except QuestreeError as error:
        if debug:
            raise
        errors.print(f"[red]error:[/] {_escaped(error)}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("[red]stopped[/]; what was finished is kept, the same command goes on from there")
        sys.exit(130)
    except Exception as error:
        if debug:
            raise
        kind = type(error).__name__
        errors.print(f"[red]unexpected {kind}:[/] {_escaped(error)} (--debug shows where)", soft_wrap=True)
        sys.exit(1)


def _escaped(error: Exception) -> str:
    from rich.markup import escape

    return escape(" ".join(str(error).split()))
