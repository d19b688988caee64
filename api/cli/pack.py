"""questree pack"""

from pathlib import Path
from shlex import quote

from .screen import echo


def pack(
    runs: list[Path],
    out: Path = Path("study.capsule"),
) -> None:
    """Put runs into one file, with all that the LM and the index said: anyone can replay it, offline.

    Args:
        runs: Folders of evaluations, comparisons or ablations; all runs in them are taken.
        out: The file to write.
    """
    from ..evaluation.capsule import pack as packed

    facts = packed(runs, out)
    counts = [sum(run[name] for run in facts) for name in ("questions", "requests", "searches")]
    echo(
        f"{out}: {len(facts)} runs, {counts[0]:,} questions, {counts[1]:,} LM requests, {counts[2]:,} "
        f"searches; {out.stat().st_size:,} bytes\nreplay it: questree replay {quote(str(out))}"
    )
