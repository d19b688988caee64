"""The options that commands share, spelled once. Each is also a setting: see `questree.settings.RunSettings`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

SHARED: dict[str, Any] = {
    "task": Annotated[str | None, typer.Option(help="Task by name, or a JSONL file of questions. Default: mini.")],
    "split": Annotated[str | None, typer.Option(help="train, dev or test, or several: dev,test. Default: dev.")],
    "limit": Annotated[int | None, typer.Option(min=1, help="At most so many questions, a seeded sample.")],
    "seed": Annotated[int | None, typer.Option(help="Of every random choice. Default: 0.")],
    "lm": Annotated[
        str | None, typer.Option("--lm", help="A DSPy model name, 'simulated', or 'recorded:FILE'. Default: simulated.")
    ],
    "api_base": Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server, ending in /v1.")],
    "retriever": Annotated[
        str | None,
        typer.Option(
            help="Folder of an index (`questree index`), http://host:port of a server (`questree serve-retriever`), "
            "or several joined by +, fused by rank."
        ),
    ],
    "reader": Annotated[
        str | None,
        typer.Option(
            help="'lm', a folder of `questree train-reader` or `calibrate-reader`, or a DPR reader's name. Default: lm."
        ),
    ],
    "duplicates": Annotated[
        str | None,
        typer.Option(
            help="What tells repeated queries: 'exact', 'retriever', a cross-encoder by name, or a folder of "
            "`questree calibrate-duplicates`. Default: exact."
        ),
    ],
    "defence": Annotated[
        str | None,
        typer.Option(
            help="Leave out passages that look planted: agreement (they repeat the question, or one another) or "
            "reader (a trained --reader finds no answer in them). Default: none."
        ),
    ],
    "concurrency": Annotated[int | None, typer.Option(min=1, help="Questions answered at the same time. Default: 4.")],
    "timeout": Annotated[float | None, typer.Option(help="Seconds that one LM request may take. Default: 120.")],
    "retries": Annotated[
        int | None, typer.Option(min=0, help="Of an LM request that was turned away or not answered. Default: 3.")
    ],
    "deadline": Annotated[float | None, typer.Option(help="Seconds that a question may take. Default: 1800.")],
    "window": Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens of a prompt and its reply: passages that do not fit are left out. Default: the model's."
        ),
    ],
    "reply_tokens": Annotated[int | None, typer.Option(min=1, help="Room for a reply. Default: the model's.")],
    "max_failures": Annotated[int | None, typer.Option(min=0, help="Stop when more questions than this failed.")],
    "max_calls": Annotated[int | None, typer.Option(min=1, help="Budget: LM calls, of all programs together.")],
    "max_tokens": Annotated[int | None, typer.Option(min=1, help="Budget: tokens, in and out.")],
    "max_cost": Annotated[float | None, typer.Option(help="Budget: US dollars, where the price is known.")],
    "tracking_uri": Annotated[
        str | None, typer.Option(help="MLflow's tracking URI, or 'none'. Default: sqlite:///mlflow.db.")
    ],
    "out": Annotated[Path | None, typer.Option(help="Folder to write.")],
    "config": Annotated[
        Path | None, typer.Option(help="TOML file of settings. Default: questree.toml, if there is one.")
    ],
}

QUESTION = ("timeout", "retries", "deadline", "window", "reply_tokens")
"""Those that also mean something to a single question."""
BUDGET = ("max_calls", "max_tokens", "max_cost")

ProgramSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the program; may be repeated.")
]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="By name; the first is the score. Default: the task's.")
]


def with_settings(command: Callable[..., None], only: Sequence[str] = tuple(SHARED)) -> Callable[..., None]:
    """The command with the shared options added to its own; they reach it as one argument, ``settings``.

    Args:
        command: takes ``settings`` first. Its module keeps annotations as they are, not as texts.
        only: those of the shared options that mean something to it.
    """
    own = [parameter for name, parameter in inspect.signature(command).parameters.items() if name != "settings"]

    def run(**given: Any) -> None:
        from ..settings import run_settings

        settings = run_settings(**{name: given.pop(name) for name in only})
        command(settings, **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, keyword, default=None, annotation=SHARED[name]) for name in only]
    parameters = [*(parameter.replace(kind=keyword) for parameter in own), *added]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def named_values(given: list[str] | None, option: str) -> dict[str, Any]:
    """``["max_rounds=3", "completion=false"]`` as settings.

    Raises:
        QuestreeError: if one has no ``=``.
    """
    from ..common.errors import QuestreeError

    settings: dict[str, Any] = {}
    for one in given or []:
        name, equals, value = one.partition("=")
        if not equals:
            raise QuestreeError(f"{option} {one}: write NAME=VALUE, for example max_rounds=3")
        settings[name.strip().replace("-", "_")] = read_value(value)
    return settings


def read_value(text: str) -> Any:
    """A value as typed: JSON where it is JSON, else the text."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
