"""Commands from functions: a pydantic model among the parameters becomes an option for each of its fields."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

ProgramSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the program; repeat it.")
]
Program = Annotated[
    str | None,
    typer.Argument(
        help="A program's name, or a compiled one's folder, runs:/…, models:/… or hf://…. Default: the settings'."
    ),
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
Port = Annotated[int, typer.Option(metavar="", min=0, max=65535, help="Port to listen at; 0 takes a free one.")]
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


def as_command(function: Callable[..., object]) -> Callable[..., None]:
    """Return a function that typer makes a command of: it takes the fields of models in place of the models.

    A parameter without a default is an argument and another one an option, unless its annotation says so itself. Its
    help stands under ``Args:`` in the docstring, or with an annotation that several commands share. Of `RunSettings`,
    ``Annotated[RunSettings, "task LM"]`` takes some fields (`questree.settings.chosen`). Annotations are taken as they
    are: ``from __future__ import annotations`` does not stand in the file.
    """
    from pydantic import BaseModel

    from ..settings import RunSettings, as_model, chosen, run_settings

    about, helps = described_arguments(function.__doc__ or "")
    models: dict[str, tuple[type[BaseModel], list[str]]] = {}
    options: dict[str, inspect.Parameter] = {}
    settings: dict[str, inspect.Parameter] = {}
    keyword = inspect.Parameter.KEYWORD_ONLY
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *words = get_args(parameter.annotation) or (parameter.annotation,)
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            annotation = _with_help(parameter, helps[name]) if name in helps else parameter.annotation
            options[name] = parameter.replace(kind=keyword, annotation=annotation)
            continue
        fields = chosen(" ".join(words)) if kind is RunSettings else words or list(kind.model_fields)
        models[name] = kind, [*fields, *(["config"] if kind is RunSettings else [])]
        panel, among = (_PANEL, settings) if kind is RunSettings else (None, options)
        for field in fields:
            annotation = _option(field, kind.model_fields[field], panel)
            among[field] = inspect.Parameter(field, keyword, default=None, annotation=annotation)
        if kind is RunSettings:
            settings["config"] = inspect.Parameter("config", keyword, default=None, annotation=_Config)

    def run(**given: Any) -> None:
        made = {}
        for name, (kind, fields) in models.items():
            typed = {field: given.pop(field) for field in fields}
            made[name] = run_settings(**typed) if kind is RunSettings else as_model(kind, typed)
        function(**made, **given)

    parameters = [*options.values(), *settings.values()]
    run.__name__, run.__doc__ = function.__name__, about
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def described_arguments(docstring: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of its function, and of each argument by name."""
    about, _, listed = inspect.cleandoc(docstring).partition("\n\nArgs:\n")
    told = re.findall(r"(?m)^ {4}(\w+): (.+(?:\n {5}.+)*)", listed)
    return about, {name: " ".join(text.split()) for name, text in told}


def _with_help(parameter: inspect.Parameter, text: str) -> Any:
    """Return the annotation that makes a parameter an argument or an option of a command, with this help."""
    kind: Any = parameter.annotation
    if get_origin(kind) is Annotated:
        kind, given = get_args(kind)
        told = copy(given)
    elif parameter.default is parameter.empty:
        told = typer.Argument()
    else:
        told = typer.Option(f"--{parameter.name.rstrip('_').replace('_', '-')}")
    told.help = text
    return Annotated[kind, told]


def _option(name: str, field: Any, panel: str | None) -> Any:
    """Return the annotation that makes a field an option: its help, default and lower bound, and its type by these.

    So there is room for whole words on 80 columns. Of a switch there is the name alone that changes its default.
    """
    switch = f" /--no-{name}" if field.default else f"--{name}"
    names = [switch.replace("_", "-")] if field.annotation is bool else []
    about = " ".join(field.description.split())
    text = about if field.default is None else f"{about} Default: {field.default}."
    least = next((bound.ge for bound in field.metadata if hasattr(bound, "ge")), None)
    words = [word for kind in get_args(field.annotation) if get_origin(kind) is Literal for word in get_args(kind)]
    kind = str if words else field.annotation  # a number or a word: the model reads it
    option = typer.Option(*names, help=text, metavar="", min=None if words else least, rich_help_panel=panel)
    return Annotated[kind | None, option]


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


def named_values(given: list[str] | None, option: str) -> dict[str, Any]:
    """Return ``["max_rounds=3", "completion=false"]`` as settings."""
    from ..common.errors import QuestreeError
    from ..settings import read_value

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
