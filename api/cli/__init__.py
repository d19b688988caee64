"""The command line. One file a command; heavy libraries are imported by the command that needs them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any

import typer

from . import (
    ablate,
    analyse,
    ask,
    attack,
    audit,
    calibrate_duplicates,
    calibrate_links,
    calibrate_reader,
    compare,
    compile,
    demo,
    evaluate,
    export,
    fetch,
    index,
    mcp,
    pack,
    programs,
    prompts,
    recheck,
    replay,
    retrievers,
    serve,
    serve_retriever,
    show,
    simulate,
    tasks,
    train_reader,
    ui,
)
from .options import add_command
from .screen import Screen, echo

app = typer.Typer(
    name="questree",
    help="Answer questions that need several facts; show each step and cite the passage behind it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(tasks.tasks)
app.command()(programs.programs)
app.command()(programs.metrics)
app.command()(programs.optimizers)
app.command()(fetch.fetch)
app.command()(index.index)
app.command()(retrievers.retrievers)
app.command()(serve_retriever.serve_retriever)
add_command(app, compile.compile)
add_command(app, evaluate.evaluate)
add_command(app, recheck.recheck, without=recheck.NO_SETTINGS)
add_command(app, compare.compare)
add_command(app, ablate.ablate)
add_command(app, audit.audit, only=audit.SETTINGS)
add_command(app, ask.ask, only=ask.SETTINGS)
add_command(app, attack.attack, without=attack.NO_SETTINGS)
add_command(app, serve.serve, only=serve.SETTINGS)
add_command(app, mcp.mcp, only=mcp.SETTINGS)
app.command()(show.show)
app.command()(export.export)
app.command()(pack.pack)
add_command(app, replay.replay, without=replay.NO_SETTINGS)
add_command(app, ui.ui, only=ui.SETTINGS)
add_command(app, prompts.prompts, only=prompts.SETTINGS)
add_command(app, train_reader.train_reader, only=train_reader.SETTINGS)
add_command(app, calibrate_reader.calibrate_reader, only=calibrate_reader.SETTINGS)
add_command(app, calibrate_duplicates.calibrate_duplicates, only=calibrate_duplicates.SETTINGS)
add_command(app, calibrate_links.calibrate_links, only=calibrate_links.SETTINGS)
app.add_typer(analyse.app, name="analyse")
app.add_typer(simulate.app, name="simulate")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        echo(f"questree {version('questree')}")
        raise typer.Exit


@app.callback()
def _shared(
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks and log what happens."),
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
) -> None:
    logging.setLogRecordFactory(_record_without_secrets)
    logging.basicConfig(level=logging.INFO if debug else logging.WARNING, format="%(name)s: %(message)s")


def _record_without_secrets(*given: Any, **more: Any) -> logging.LogRecord:
    """Return a log record of any library: its message and its traceback are printable, and hold no secret."""
    from ..common.text import printable  # not before it is needed: pydantic takes a while

    record = logging.LogRecord(*given, **more)
    with suppress(TypeError, ValueError):  # of a library that logs what does not fit its format
        record.msg, record.args = printable(_without_secrets(record.getMessage())), None
    if record.exc_info:
        record.exc_text = printable(_without_secrets(logging.Formatter().formatException(record.exc_info)))
    return record


def main() -> None:
    """Run a command. A mistake that the user can put right is one line and exit code 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what stops a process stops it as Ctrl-C does
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        try:
            app(args=["--debug", *arguments] if debug and arguments else arguments)
        finally:
            _tell_paid()
    except SystemExit as end:
        stop = getattr(end.__context__, "__cause__", None)  # typer's own exit hides why
        if isinstance(stop, KeyboardInterrupt):
            _say("stopped", str(stop) or "run the same command again to go on")
            if getattr(stop, "at_once", False):
                os._exit(130)  # Python would wait for the threads of the questions that are on their way
        raise
    except Exception as error:
        if debug:
            echo(_without_secrets(traceback.format_exc().rstrip()), err=True)
            sys.exit(1)
        from ..common.errors import QuestreeError  # not before it is needed: pydantic takes a while

        if isinstance(error, QuestreeError):
            _say("error", str(error))
            sys.exit(2)
        _say(f"unexpected {type(error).__name__}", f"{error} (--debug shows where)")
        sys.exit(1)


def _tell_paid() -> None:
    """Tell what all LM requests took, those of earlier attempts too, if there were any."""
    account = sys.modules.get("questree.lm.account")  # not imported, no LM was asked
    if account is not None and (told := account.told()):
        Screen(stderr=True).print(f"LM requests: {told}", soft_wrap=True, style="dim")


def _say(what: str, message: str) -> None:
    from rich.text import Text

    said = " ".join(_without_secrets(message).split())
    line = Text(f"{what}: ", style="red").append(said, style="default")
    Screen(stderr=True).print(line, soft_wrap=True)


def _without_secrets(text: str) -> str:
    from ..common.secrets import without_secrets  # as above

    return without_secrets(text)
