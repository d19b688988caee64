"""questree fetch"""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from .screen import Screen, echo

if TYPE_CHECKING:
    from ..data import Fetched


def fetch(
    task: str,
    from_: list[Path] | None = None,
    update: bool = False,
    train_limit: Annotated[int, typer.Option(min=0)] = 5_000,
    skip_bad: bool = False,
) -> None:
    """Get a task's questions for --task, and its paragraphs as a corpus for `questree index`.

    Args:
        task: A task's name; `questree list tasks` lists them.
        from_: A file as the task's authors publish it, instead of the hub; repeat it.
        update: Fetch again what is already here.
        train_limit: Training questions to keep, a sample; 0 keeps all, and every command reads all.
        skip_bad: Leave out rows that cannot be read, and say how many.
    """
    from rich.progress import Progress, SpinnerColumn

    from ..data import fetch_task

    with Progress(SpinnerColumn(), "{task.description}", console=Screen(stderr=True)) as bar:
        line = bar.add_task(f"{task}: reading")
        fetched = fetch_task(
            task,
            files=from_ or (),
            update=update,
            train_limit=train_limit or None,
            skip_bad=skip_bad,
            on_progress=lambda rows: bar.update(line, description=f"{task}: {rows:,} rows"),
        )
    _tell(task, fetched)


def _tell(task: str, fetched: "Fetched") -> None:
    manifest = fetched.manifest
    counts = ", ".join(f"{manifest.counts[split]:,} {split}" for split in sorted(manifest.counts))
    origin = f"{manifest.hub.id} at {manifest.hub.revision}" if manifest.hub else ", ".join(manifest.read)
    echo(f"{fetched.questions}: {counts}; from {origin}; {manifest.licence}{'' if fetched.new else '; is there'}")
    for reason, rows in sorted(manifest.left_out.items()):
        echo(f"left out: {rows:,} × {reason}")
    echo(_next(task, fetched))


def _next(task: str, fetched: "Fetched") -> str:
    """Return the command that comes next."""
    from ..data import KNOWN_TASKS

    corpus = KNOWN_TASKS[task].corpus
    if fetched.corpus is not None:
        passages = f"{fetched.manifest.passages:,} passages"
        return f"{passages}; next: questree index {quote(str(fetched.corpus))} --out indexes/{task}"
    if corpus is None or corpus.address is None:
        return "It came without paragraphs; index a corpus of your own: questree index CORPUS --out DIR"
    index = f"questree index {quote(str(corpus.file))} --out indexes/{task}"
    return f"It is answered from {corpus.name}; next: get {corpus.address}, then {index}"
