"""questree pack"""

from pathlib import Path
from typing import Annotated

import typer


def pack(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of evaluations, comparisons or ablations; all runs in them are taken.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("study.capsule"),
) -> None:
    """Put runs into one file, with all that the LM and the index said: anyone can replay it, offline."""
    from ..evaluation.capsule import pack as packed

    facts = packed(runs, out)
    counts = [sum(run[name] for run in facts["runs"]) for name in ("questions", "requests", "searches")]
    typer.echo(
        f"{out}: {len(facts['runs'])} runs, {counts[0]:,} questions, {counts[1]:,} LM requests, {counts[2]:,} "
        f"searches; {out.stat().st_size:,} bytes\nreplay it: questree replay {out}"
    )
