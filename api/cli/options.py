"""The options that commands share, spelled once. Each is also a setting: see `questree.settings.RunSettings`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Task = Annotated[str | None, typer.Option(help="Task by name, or a JSONL file of questions. [mini]")]
Split = Annotated[str | None, typer.Option(help="train, dev or test. [dev]")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many questions, a seeded sample.")]
Seed = Annotated[int | None, typer.Option(help="Of every random choice. [0]")]
LM = Annotated[str | None, typer.Option("--lm", help="A DSPy model name, 'simulated', or 'recorded:FILE'. [simulated]")]
ApiBase = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server, ending in /v1.")]
Retriever = Annotated[Path | None, typer.Option(help="Folder of an index made by `questree index`.")]
Reader = Annotated[str | None, typer.Option(help="'lm', or a DPR reader by name or folder. [lm]")]
Duplicates = Annotated[
    str | None, typer.Option(help="'exact', or a cross-encoder by name or folder, for repeated queries. [exact]")
]
Concurrency = Annotated[int | None, typer.Option(min=1, help="Questions answered at the same time. [4]")]
TrackingURI = Annotated[str | None, typer.Option(help="MLflow's tracking URI, or 'none'. [sqlite:///mlflow.db]")]
Out = Annotated[Path | None, typer.Option(help="Folder to write.")]
Config = Annotated[Path | None, typer.Option(help="TOML file of settings. [questree.toml, if there is one]")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the program; may be repeated.")
]


def named_values(given: list[str] | None, option: str) -> dict[str, Any]:
    """``["max_rounds=3", "completion=false"]`` as settings; values are read as JSON where they are JSON.

    Raises:
        QuestreeError: if one has no ``=``.
    """
    import json

    from ..retrieval.errors import QuestreeError

    settings: dict[str, Any] = {}
    for one in given or []:
        name, equals, value = one.partition("=")
        if not equals:
            raise QuestreeError(f"{option} {one}: write NAME=VALUE, for example max_rounds=3")
        try:
            settings[name.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            settings[name.strip().replace("-", "_")] = value
    return settings
