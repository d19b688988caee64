"""The command line. One file a command, which is imported when it is named; so are the heavy libraries."""

from __future__ import annotations

import ast
import logging
import os
import re
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..common.errors import QuestreeError
from ..common.interruption import once_an_instant
from .options import as_command, described_arguments
from .screen import Screen, echo

_PANELS = {
    "The six to begin with": ("index", "ask", "compile", "compare", "show", "serve"),
    "Ask": ("search", "demo", "mcp", "prompts"),
    "Build": (*("fetch", "questions", "review", "serve-retriever", "calibrate-reader", "calibrate-links"),),
    "Measure": ("evaluate", "audit", "attack", "analyse"),
    "Share": ("export", "pack", "replay"),
    "Tools": ("check", "list", "ui", "simulate"),
}
COMMANDS = {command: panel for panel, commands in _PANELS.items() for command in commands}
"""Each is a function, or an ``app`` of several, in the file of its name; with its panel in the help."""
_FILES = {name: "calibrate" for name in COMMANDS if name.startswith("calibrate-")} | {"list": "lists"}


class _Commands(TyperGroup):
    """The commands, in the order in which `questree --help` lists them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)  # each is imported when it is named
        self.commands = names

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """Import a command and return it; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{_file(cmd_name)}", __name__)
        if hasattr(module, "app"):
            command: Any = typer.main.get_group(module.app)
        else:
            alone = typer.Typer(add_completion=False)
            alone.command()(as_command(getattr(module, _function(cmd_name))))
            command = typer.main.get_command(alone)
        command.name = cmd_name
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; what each command does is read from its file, so that none is imported for it."""
        commands: Any = {
            name: TyperCommand(name, help=_about(name), rich_help_panel=panel) for name, panel in COMMANDS.items()
        }
        shown = TyperGroup(name=self.name, help=self.help, params=self.params, commands=commands)
        shown.format_help(ctx, formatter)


def _file(command: str) -> str:
    return _FILES.get(command, command.replace("-", "_"))


def _function(command: str) -> str:
    return "list_" if command == "list" else command.replace("-", "_")


def _about(command: str) -> str:
    """Return the docstring of a command's function, or of the file where several stand in it."""
    tree = ast.parse(Path(__file__).with_name(f"{_file(command)}.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == _function(command)]
    about, _ = described_arguments(ast.get_docstring(functions[0] if functions else tree) or "")
    return about


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
    level, form = (logging.INFO, "%(name)s: %(message)s") if debug else (logging.WARNING, "%(message)s")
    logging.basicConfig(level=level, format=form)
    for library in ("urllib3", "huggingface_hub.utils._http"):  # they tell each retry
        logging.getLogger(library).setLevel(logging.INFO if debug else logging.ERROR)


def _record_without_secrets(*given: Any, **more: Any) -> logging.LogRecord:
    """Return a log record of any library: its message and its traceback are printable, and hold no secret."""
    record = logging.LogRecord(*given, **more)
    with suppress(TypeError, ValueError):  # of a library that logs what does not fit its format
        record.msg, record.args = _shown(record.getMessage()), None
    if record.exc_info:
        record.exc_text = _shown(logging.Formatter().formatException(record.exc_info))
    return record


def _shown(text: str) -> str:
    from ..common.secrets import without_secrets  # not before it is needed: pydantic takes a while
    from ..common.text import printable

    return printable(without_secrets(text))


def main() -> None:
    """Run a command. A mistake that the user can put right is one line and exit code 2."""
    interrupted = once_an_instant(signal.default_int_handler)
    for number in (signal.SIGINT, signal.SIGTERM):  # what stops a process stops it as Ctrl-C does
        signal.signal(number, interrupted)
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
            _say("stopped", str(stop).removeprefix("Stopped ") or "run the same command again to go on")
            if getattr(stop, "at_once", False):
                os._exit(130)  # Python would wait for the threads of the questions that are on their way
        raise
    except Exception as error:
        if debug:
            error.__suppress_context__ = False  # what is left out of a message is wanted here
            echo(_shown(traceback.format_exc().rstrip()), err=True)
            sys.exit(1)
        if isinstance(error, QuestreeError):
            _say("error", str(error))
            sys.exit(2)
        if isinstance(error, (ImportError, OSError)) and re.search(r"\.(so|dylib|pyd|dll)\b", str(error)):
            _say(
                "error",
                f"{error}. This library is not of this machine and this Python: install it in a new environment.",
            )
            sys.exit(2)
        _say(f"unexpected {type(error).__name__}", f"{error} (--debug shows where)")
        sys.exit(1)


def _tell_paid() -> None:
    """Tell what all LM requests took, those of earlier attempts too, if there were any."""
    account = sys.modules.get("questree.lm.account")  # not imported, no LM was asked
    if account is not None and (line := account.cost_line()):
        Screen(stderr=True).print(f"LM requests: {line}", soft_wrap=True, style="dim")


def _say(what: str, message: str) -> None:
    from rich.text import Text

    line = Text(f"{what}: ", style="red").append(" ".join(_shown(message).split()), style="default")
    Screen(stderr=True).print(line, soft_wrap=True)
