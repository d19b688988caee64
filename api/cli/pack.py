"""questree pack"""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from .screen import echo


def pack(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of evaluations, comparisons or ablations; all runs in them are taken.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("study.capsule"),
    without_texts: Annotated[
        bool,
        typer.Option("--without-texts", help="Leave out questions, prompts and passages; a replay needs the task."),
    ] = False,
) -> None:
    """Put runs into one file, with all that the LM and the index said: anyone can replay it, offline."""
    from ..evaluation.capsule import pack as packed

    facts = packed(runs, out, texts=not without_texts)
    counts = [sum(run[name] for run in facts) for name in ("questions", "requests", "searches")]
    if without_texts:
        echo("without texts: questions and passages by their ids, prompts by digests; a replay needs --task")
    echo(
        f"{out}: {len(facts)} runs, {counts[0]:,} questions, {counts[1]:,} LM requests, {counts[2]:,} "
        f"searches; {out.stat().st_size:,} bytes\nreplay it: questree replay {quote(str(out))}"
    )
