"""questree audit"""

from typing import Annotated

import typer

from ..settings import RunSettings
from . import options
from .screen import echo, print_figures, print_json


def audit(
    settings: Annotated[RunSettings, "split limit seed retriever out"],
    task: Annotated[str | None, typer.Argument()] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show which questions of a task the corpus of an index can answer at all.

    The ids of the others are written to a file, which evaluate and compare take: --leave-out FILE.

    Args:
        task: Task by name, or a JSONL file of questions. Default: that of the settings.
    """
    from ..common.files import alone_in, write_atomically
    from ..evaluation.audit import audit as audited
    from ..evaluation.audit import context_shares
    from ..experiment import Experiment
    from .progress import progress_bars

    experiment = Experiment(settings.model_copy(update={"task": task or settings.task}))
    ids = [example.id for example in experiment.examples(settings.split, settings.limit)]
    by_id = {question.id: question for split in experiment.task.questions.values() for question in split}
    folder = experiment.folder("audit", experiment.settings.task)
    with progress_bars(as_json) as bars, alone_in(folder, "the audit"):
        asked = [by_id[id] for id in ids]
        found = audited(asked, experiment.undefended, bars.count)
        shares = found.shares | context_shares(asked, experiment.undefended)
        unanswerable = [asked.id for asked in found.unanswerable]
        write_atomically(file := folder / "unanswerable.txt", "".join(f"{id}\n" for id in unanswerable))
    if as_json:
        told = {"passages": found.passages, "questions": len(ids), "unanswerable": unanswerable}
        print_json({**told, "file": file, "shares": shares})
        return
    print_figures([{"found": name, "share": f"{one:.3f}", "of": str(one.n)} for name, one in shares.items()])
    if not unanswerable:
        echo(f"No question is out of reach of these {found.passages:,} passages.")
        return
    echo(f"{found.passages:,} passages cannot answer {len(unanswerable)} of {len(ids)} questions; to leave them out:")
    echo(f"--leave-out {file}")
