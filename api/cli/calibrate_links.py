"""questree calibrate-links"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings

SETTINGS = ("limit", "seed", "retriever")


def calibrate_links(
    settings: "RunSettings",
    task: Annotated[str, typer.Argument(help="A task, or a file of questions, with their gold passages.")],
    test_split: Annotated[
        str, typer.Option(help="Split to measure the new choice on; it is trained on the others.")
    ] = "test",
) -> None:
    """Train the choice of linked: on your own questions, and keep it beside the links, where it is used from then on.

    It takes minutes on one core; no LM is asked. --retriever is linked:INDEX.
    """
    from ..data import load_task
    from ..retrieval import LinkedRetriever, open_retriever
    from ..retrieval.linked.calibration import calibrate
    from .options import refuse

    refuse((not (settings.retriever or "").startswith("linked:"), "name what is linked: --retriever linked:INDEX"))
    retriever = cast(LinkedRetriever, open_retriever(str(settings.retriever)))
    questions = load_task(task, limit=settings.limit, seed=settings.seed).questions
    choice, measured = calibrate(retriever, questions, test_split, seed=settings.seed)
    for name, found in measured.items():
        echo(f"{name}: recall@5 {found.recall}; the whole chain among 15 {found.chains}")
    choice.save(cast(Path, retriever.choice_file))
    echo(f"kept in {retriever.choice_file}; used with --retriever {settings.retriever}")
