"""questree index"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..retrieval import BadLine


class Kind(str, Enum):
    """What to index with."""

    auto = "auto"
    exact = "exact"
    colbert = "colbert"
    bm25 = "bm25"


def index(
    corpus: Annotated[Path, typer.Argument(help="JSONL (id, title, text) or TSV of passages.")],
    out: Annotated[Path, typer.Option(help="Folder of the index.")],
    kind: Annotated[
        Kind, typer.Option(help="auto: exact late interaction while the corpus is small, else PLAID (colbert).")
    ] = Kind.auto,
    checkpoint: Annotated[
        str | None, typer.Option(help="A ColBERT checkpoint by name or folder. Default: made from MiniLM, offline.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out lines that cannot be read, and say so.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the index that is there.")] = False,
) -> None:
    """Make an index of a corpus, for every command's --retriever."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ..retrieval import build_index, read_manifest

    bad: list[BadLine] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("encoding", total=None)

        def shown(done: int, total: int) -> None:
            stage = "encoding" if done < total else "finishing (PLAID trains its centroids: minutes)"
            bar.update(task, description=stage, completed=done, total=total)

        build_index(
            corpus,
            out,
            kind=kind.value,
            checkpoint=checkpoint,
            skip_bad=skip_bad,
            bad=bad,
            overwrite=overwrite,
            progress=shown,
        )
    for line in bad:
        typer.echo(f"left out line {line.number}: {line.problem}", err=True)
    manifest = read_manifest(out)
    typer.echo(
        f"{out}: {manifest.corpus.passages:,} passages, {manifest.kind}, {manifest.fingerprint}; "
        f"use it with --retriever {out}"
    )
