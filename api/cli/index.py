"""questree index"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Kind(str, Enum):
    """What to index with."""

    auto = "auto"
    exact = "exact"
    plaid = "plaid"
    bm25 = "bm25"


def index(
    corpus: Annotated[Path, typer.Argument(help="JSONL (id, title, text) or TSV of passages.")],
    out: Annotated[Path, typer.Option(help="Folder of the index.")],
    kind: Annotated[
        Kind, typer.Option(help="auto: exact late interaction while the corpus is small, else PLAID.")
    ] = Kind.auto,
    checkpoint: Annotated[
        str | None, typer.Option(help="A ColBERT checkpoint by name or folder. [made from MiniLM, offline]")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out lines that cannot be read, and say so.")
    ] = False,
) -> None:
    """Make an index of a corpus, for every command's --retriever."""
    from rich.console import Console
    from rich.progress import Progress

    from ..retrieval import build_index

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("reading", total=None)

        def shown(stage: str, done: int, total: int | None) -> None:
            progress.update(task, description=stage, completed=done, total=total)

        build_index(corpus, out, kind=kind.value, checkpoint=checkpoint, skip_bad=skip_bad, progress=shown)
    typer.echo(f"{out} is ready: --retriever {out}")
