"""Options that commands share: those of the settings, made from their fields, and a few more."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from .screen import echo

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

ProgramSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the program; repeat it.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", help="A metric by name; repeat it. The first is the score. Default: the task's."),
]
Judge = Annotated[
    str | None,
    typer.Option(
        help="An LM by its DSPy name: it judges every answer as well, beside cover-EM. A budget counts its calls too."
    ),
]


def _can_be_written(out: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before anything is paid for."""
    if out is not None and not (out.exists() or os.access(out.parent, os.W_OK)):
        raise typer.BadParameter(f"nothing can be written to the folder {out.parent}")
    return out


Out = Annotated[
    Path | None,
    typer.Option(
        help="Write to this file instead of the screen.", dir_okay=False, writable=True, callback=_can_be_written
    ),
]
Details = Annotated[bool, typer.Option("--details", help="Show every figure, and a line on what each one is.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, for another program.")]
Host = Annotated[str, typer.Option(help="Address to listen at. One that other machines reach needs a token.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")]
TokenFile = Annotated[
    Path | None, typer.Option(help="File of the token that clients must bring. Default: QUESTREE_TOKEN, if set.")
]
BehindProxy = Annotated[
    bool,
    typer.Option(
        "--behind-proxy",
        help="Believe X-Forwarded-For and X-Forwarded-Proto of a proxy on this machine, or in FORWARDED_ALLOW_IPS.",
    ),
]

_PANEL = "Settings, also keys of questree.toml and variables (QUESTREE_LM)"
_Config = Annotated[
    Path | None,
    typer.Option(help="TOML file of settings. Default: questree.toml, if there is one.", rich_help_panel=_PANEL),
]


def add_command(
    app: typer.Typer,
    command: Callable[..., None],
    *,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> None:
    """Add a command; one that takes the settings, as its first argument ``settings``, gets their options.

    The options are made when the command is called: they come from pydantic models, and `questree --help` is twice
    as fast without pydantic.

    Args:
        app: where the command belongs.
        command: its module keeps annotations as they are, not as texts.
        only: the settings that mean something to it, ``limits`` for all of `questree.lm.policy.Limits`; None for all.
        without: settings that mean nothing to it.
    """
    if "settings" not in inspect.signature(command).parameters:
        app.command()(command)
        return

    class CalledLater(TyperCommand):
        """The name and the help of the command."""

        def make_context(self, *args: Any, **extra: Any) -> Any:
            """Make the whole command, and let it read the arguments."""
            return _whole_command(command, only, without).make_context(*args, **extra)

    def listed() -> None: ...

    listed.__name__, listed.__doc__ = command.__name__, command.__doc__
    app.command(cls=CalledLater)(listed)


def _whole_command(command: Callable[..., None], only: Sequence[str] | None, without: Sequence[str]) -> Any:
    """Return the command with its own options and those of the settings."""
    from ..lm.policy import Limits, RunPolicy
    from ..settings import RunSettings, run_settings

    every = sorted(RunSettings.model_fields, key=RunPolicy.model_fields.__contains__)  # what is run before how
    wanted = {*(every if only is None else only)} - {*without}
    wanted |= {*Limits.model_fields} if "limits" in wanted else set()
    wanted -= {"program"}  # commands have their own words for it
    fields = {name: RunSettings.model_fields[name] for name in every if name in wanted}
    own = [parameter for name, parameter in inspect.signature(command).parameters.items() if name != "settings"]

    def run(**given: Any) -> None:
        settings = run_settings(**{name: given.pop(name) for name in (*fields, "config")})
        command(settings, **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = {name: _option(field) for name, field in fields.items()} | {"config": _Config}
    parameters = [parameter.replace(kind=keyword) for parameter in own]
    parameters += [
        inspect.Parameter(name, keyword, default=None, annotation=annotation) for name, annotation in shared.items()
    ]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False)
    alone.command()(run)
    return typer.main.get_command(alone)


def _option(field: FieldInfo) -> Any:
    """Return the annotation that makes a field an option: its type, help, default and lower bound."""
    kind: Any = field.annotation
    text = field.description if field.default is None else f"{field.description} Default: {field.default}."
    least = next((bound.ge for bound in field.metadata if hasattr(bound, "ge")), None)
    return Annotated[kind | None, typer.Option(help=text, min=least, rich_help_panel=_PANEL)]


def refuse(*mistakes: tuple[object, str]) -> None:
    """Refuse options that mean nothing together.

    Args:
        mistakes: each whether it was made, and what to do instead.

    Raises:
        typer.BadParameter: of the first that was made.
    """
    for made, said in mistakes:
        if made:
            raise typer.BadParameter(said)


def clear_stdout(wanted: bool) -> AbstractContextManager[Any]:
    """Return a context in which what libraries print goes to stderr (MLflow names its server's pages), if wanted."""
    return redirect_stdout(sys.stderr) if wanted else nullcontext()


def put(text: str, out: Path | None) -> None:
    """Write a text to the file of `Out`, or print it."""
    from ..common.text import printable

    if out is None:
        echo(text)
    else:
        out.write_text(f"{printable(text)}\n", encoding="utf-8")


def print_as_json(value: Any) -> None:
    """Print dataclasses, models, dicts and lists as JSON, as `print_json`; a number that is none becomes null."""
    from pydantic_core import to_json

    print_json(to_json(value, indent=2).decode())


def print_json(text: str) -> None:
    """Print JSON as it is, but for what would move the cursor."""
    from ..common.text import printable_json

    echo(printable_json(text))


def named_values(given: list[str] | None, option: str) -> dict[str, Any]:
    """Return ``["max_rounds=3", "completion=false"]`` as settings.

    Raises:
        QuestreeError: one has no ``=``, or a name stands twice.
    """
    from ..common.errors import QuestreeError

    settings: dict[str, Any] = {}
    for one in given or []:
        name, equals, value = one.partition("=")
        if not equals:
            raise QuestreeError(f"{option} {one}: write NAME=VALUE, for example max_rounds=3")
        name = name.strip().replace("-", "_")
        if name in settings:
            raise QuestreeError(f"{option} {name} is given twice: leave one of them out.")
        settings[name] = read_value(value)
    return settings


def read_value(text: str) -> Any:
    """Return a typed value: what the text means as JSON, else the text."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
