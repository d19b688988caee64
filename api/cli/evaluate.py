"""questree evaluate"""

from __future__ import annotations

from typing import Annotated

import typer

from . import options


def evaluate(
    program: Annotated[
        str, typer.Argument(help="A program's name, a compiled one's folder, runs:/… or models:/…")
    ] = "searchain",
    metric: Annotated[list[str] | None, typer.Option(help="By name; the first is the score. [the task's]")] = None,
    set_: options.Set = None,
    task: options.Task = None,
    split: options.Split = None,
    limit: options.Limit = None,
    seed: options.Seed = None,
    lm: options.LM = None,
    api_base: options.ApiBase = None,
    retriever: options.Retriever = None,
    reader: options.Reader = None,
    duplicates: options.Duplicates = None,
    concurrency: options.Concurrency = None,
    tracking_uri: options.TrackingURI = None,
    out: options.Out = None,
    config: options.Config = None,
) -> None:
    """Ask a program every question of a split and score it. Goes on where it was interrupted."""
    from ..settings import run_settings

    settings = run_settings(
        config,
        task=task,
        split=split,
        limit=limit,
        seed=seed,
        lm=lm,
        api_base=api_base,
        retriever=retriever,
        reader=reader,
        duplicates=duplicates,
        concurrency=concurrency,
        tracking_uri=tracking_uri,
        out=out,
    )
    from ..experiments import evaluate_named
    from .report import evaluation_table, progress_bar

    with progress_bar() as on_progress:
        evaluation, folder = evaluate_named(
            program, settings, metrics=metric, on_progress=on_progress, **options.named_values(set_, "--set")
        )
    from rich.console import Console

    Console().print(evaluation_table({program: evaluation}))
    typer.echo(f"each question: questree show {folder}")
