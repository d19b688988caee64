"""questree export"""

from pathlib import Path

from ..common.errors import QuestreeError
from .screen import echo


def export(
    sources: list[Path],
    out: Path = Path("site"),
) -> None:
    """Write runs as pages: the comparison, lists of questions, each answer with its reasoning, prompts and passages.

    The pages are files that link to one another. They hold no script, ask nothing of a network, and open from a folder.

    Args:
        sources: A capsule, or folders of evaluations, comparisons or ablations.
        out: The folder to write; it must be new, or empty.
    """
    from shutil import copy

    from ..pages import STATIC
    from ..pages.shown_runs import ShownRuns
    from ..pages.study import Study

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise QuestreeError(f"{out} is no empty folder; name another one with --out.")
    study = Study(ShownRuns(sources))
    pages = 0
    try:
        (out / "static").mkdir(parents=True, exist_ok=True)
        copy(STATIC / "questree.css", out / "static")
        for name in study.names():
            (out / name).write_text(study.page(name) or "", encoding="utf-8")
            pages += 1
    except OSError as error:
        raise QuestreeError(
            f"{out} cannot be written ({error.strerror}), {pages} pages are there; make room, or name another folder "
            "with --out."
        ) from None
    echo(f"{pages} pages; begin at {out / 'index.html'}")
