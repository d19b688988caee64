"""questree replay"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..evaluation.capsule import ReplayedRun
    from ..evaluation.capsule.differences import Difference


def replay(
    capsule: Annotated[Path, typer.Argument(help="A file of `questree pack`.")],
    question: Annotated[
        str | None, typer.Option(help="The id of a question: show everything that differs in it.")
    ] = None,
) -> None:
    """Ask a capsule's questions by the code that is installed here: no LM and no index is asked.

    Exit code 1 if a record differs; then it says for each prompt what changed, and for each question where first.
    """
    from rich.console import Console
    from rich.markup import escape

    from ..common.text import printable
    from ..evaluation.capsule import replay as replayed
    from .report import SIMULATED

    def say(text: str, **style: Any) -> None:
        console.print(escape(printable(text)), soft_wrap=True, highlight=False, **style)

    console = Console()
    found = replayed(capsule)
    for run in found.runs:
        skipped = sum(one.skipped is not None for one in run.questions)
        same = len(run.questions) - len(run.differing) - skipped
        more = f", {skipped} not replayed: their time was over" if skipped else ""
        note = f"  ({SIMULATED})" if run.simulated else ""
        say(f"{run.name}: {same} of {len(run.questions)} records are the same{more}{note}")
        for line in _told(run, question):
            say(line)
    if not found.same:
        raise typer.Exit(1)


def _told(run: "ReplayedRun", question: str | None) -> Iterable[str]:
    """Yield what differs in a run: each change once, then each question with its first; or all of one question."""
    if question is not None:
        shown = [one for one in run.differing if one.stored.id == question]
        yield from (f"  {_where(one)}\n{_indented(one.text)}" for found in shown for one in found.differences)
        return
    seen: set[tuple[str, str]] = set()
    for one in (difference for found in run.differing for difference in found.differences):
        if (one.by, one.why) not in seen:
            seen.add((one.by, one.why))
            yield f"  {one.by}: {one.why}, for example\n{_indented(one.text)}"
    for found in run.differing:
        yield f"  {found.stored.id}: first at {_where(found.differences[0])}, {len(found.differences)} in all"


def _where(difference: "Difference") -> str:
    step = f"step {difference.number}, " if difference.number else ""
    return f"{step}{difference.by}: {difference.why}"


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.splitlines())
