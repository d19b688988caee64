"""questree export"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..pages.study import ShownRun


def export(
    sources: Annotated[
        list[Path], typer.Argument(help="A capsule, or folders of evaluations, comparisons or ablations.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; it must be new, or empty.")] = Path("site"),
) -> None:
    """Write runs as pages: the comparison, lists of questions, each answer with its reasoning, prompts and passages.

    The pages are files that link to one another. They hold no script, ask nothing of a network, and open from a folder.
    """

    from ..common.errors import QuestreeError
    from ..evaluation.comparison.plots import STYLE
    from ..pages import STATIC
    from ..pages.study import study_pages

    if out.exists() and any(out.iterdir()):
        raise QuestreeError(f"{out} is not empty; name another folder with --out.")
    pages = 0
    (out / "static").mkdir(parents=True, exist_ok=True)
    style = (STATIC / "questree.css").read_text(encoding="utf-8")
    (out / "static" / "questree.css").write_text(f"{style}{STYLE}", encoding="utf-8")
    for name, page in study_pages(", ".join(source.stem for source in sources), _runs(sources)):
        (out / name).write_text(page, encoding="utf-8")
        pages += 1
    typer.echo(f"{pages} pages; begin at {out / 'index.html'}")


def _runs(sources: list[Path]) -> "list[ShownRun]":
    """Return the runs of capsules and folders, each with what was asked for its questions."""
    from ..evaluation.capsule.packed_run import read_runs
    from ..evaluation.run_folder import StoredRun, read_exchanges, stored_runs
    from ..pages.study import ShownRun

    found = [
        ShownRun(StoredRun(run.header.name, run.records, run.header.identity), run.asked)
        for source in sources
        if source.is_file()
        for run in read_runs(source)
    ]
    folders = [source for source in sources if not source.is_file()]
    return found + [ShownRun(run, read_exchanges(run.folder)) for run in (stored_runs(folders) if folders else [])]
