"""questree questions"""

from collections import Counter
from pathlib import Path
from shlex import quote
from typing import Annotated, cast

import typer

from ..evaluation.own_questions import QuestionShares
from ..settings import RunSettings
from .screen import echo, print_figures


def questions(
    settings: Annotated[RunSettings, "- split limit leave_out PARTS CODE TRACKING CLUSTER out"],
    shares: QuestionShares,
    index: str,
    out: Annotated[Path, typer.Option()],
    count: Annotated[int, typer.Option(min=1)] = 80,
    checked_by: str | None = None,
) -> None:
    """Write questions of your own corpus, with answers, steps and passages, and keep those that pass all checks.

    The others lie beside the file, each with the reason (NAME.dropped.jsonl). The same command goes on where it was
    interrupted.

    Args:
        index: Folder of an index; its links are made, if it has none.
        out: File of questions to write, which is a task.
        count: Questions to keep.
        checked_by: Another LM that checks the questions, by its DSPy name. Default: the one that writes them.
    """
    from ..evaluation.identity import lms_facts, run_identity
    from ..evaluation.own_questions import chains_of, write_questions
    from ..experiment import Experiment
    from ..programs.question_writing import QuestionWriting
    from ..retrieval import LinkedRetriever
    from .progress import progress_bars

    linked = index if index.startswith("linked:") else f"linked:{index}"
    experiment = Experiment(settings.model_copy(update={"retriever": linked}))
    retriever = cast("LinkedRetriever", experiment.retriever)
    with progress_bars() as bars, experiment.asking() as how:
        del how["tracking"]  # what is tracked are scores
        writing = QuestionWriting(retriever)
        if checked_by:
            writing.checks.set_lm(experiment.other_lm(checked_by))
        of = [run_identity(writing, task=""), shares.model_dump()]
        found = write_questions(
            writing,
            chains_of(retriever, shares, settings.seed),
            count,
            out=experiment.folder("questions", index, of=of),
            save=lambda own: own.save(out),
            on_progress=bars.questions,
            **how,
        )
    told = {"kept": len(found.kept), **found.reasons, **({"failed": found.failed} if found.failed else {})}
    print_figures(
        [{"questions": name, "": str(number)} for name, number in told.items()],
        simulated=bool(lms_facts(writing)["simulated"]),
    )
    splits = Counter(row["split"] for row in found.kept)
    echo(f"{out}: {', '.join(f'{number} {split}' for split, number in splits.items())}; next: --task {quote(str(out))}")
