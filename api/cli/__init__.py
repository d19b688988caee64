"""The command line. One file a command; heavy libraries are imported by the command that needs them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from .options import add_command
from .screen import Screen, echo

COMMANDS = (
    *("demo", "tasks", "programs", "metrics", "optimizers", "fetch", "index", "retrievers", "serve-retriever"),
    *("compile", "evaluate", "recheck", "compare", "ablate", "audit", "ask", "attack", "serve", "mcp", "show"),
    *("export", "push", "pack", "replay", "ui", "prompts", "train-reader", "calibrate-reader"),
    *("calibrate-duplicates", "calibrate-links", "analyse", "simulate"),
)
"""Each stands in the file of its name, and is imported when it is named."""
_FILES = {"metrics": "programs", "optimizers": "programs"}


class _Commands(TyperGroup):
    """The commands, in the order in which `questree --help` lists them."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return their names."""
        return [*COMMANDS]

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """Import a command and return it; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f".{_FILES.get(name, name)}", __name__)
        if hasattr(module, "app"):
            command: Any = typer.main.get_group(module.app)
        else:
            alone = typer.Typer(add_completion=False)
            only, without = getattr(module, "SETTINGS", None), getattr(module, "NO_SETTINGS", ())
            add_command(alone, getattr(module, name), only=only, without=without)
            command = typer.main.get_command(alone)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="questree",
    cls=_Commands,
    help="Answer questions that need several facts; show each step and cite the passage behind it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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
