"""questree questions"""

from collections import Counter
from pathlib import Path
from typing import Annotated, cast

import typer

from ..common.files import cannot_write
from ..evaluation.own_questions import QuestionShares
from ..settings import RunSettings
from . import options
from .screen import echo, print_figures


def questions(
    settings: Annotated[RunSettings, "- split limit leave_out PARTS CODE experiment CLUSTER out"],
    shares: QuestionShares,
    out: Annotated[Path, typer.Option()],
    index: Annotated[str, typer.Argument()] = "",
    from_feedback: Path | None = None,
    count: Annotated[int, typer.Option(min=1)] = 80,
    checked_by: str | None = None,
) -> None:
    """Write questions of your own corpus, with answers, steps and passages, and keep those that pass all checks.

    The others lie beside the file, each with the reason (NAME.dropped.jsonl). The same command goes on where it was
    interrupted.

    Args:
        out: File of questions to write, which is a task.
        index: Folder of an index; its links are made, if it has none.
        from_feedback: Ask no LM: collect what people said of answers, in this folder of `questree serve`'s questions or
            file of runs, and in the MLflow store that its traces are in.
        count: Questions to keep.
        checked_by: Another LM that checks the questions, by its DSPy name. Default: the one that writes them.
    """
    options.refuse(
        (
            bool(index) == bool(from_feedback),
            "give the folder of an index, or --from-feedback and what it collects from",
        )
    )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)  # before anything is paid
    except OSError as error:
        raise cannot_write(out, error) from error
    if from_feedback:
        _collect(from_feedback, out, settings)
        return
    from ..evaluation.identity import lms_facts, run_identity
    from ..evaluation.own_questions import chains_of, dropped_file, kept, write_questions
    from ..experiment import Experiment
    from ..programs.written_questions import QuestionWriting
    from ..retrieval import LinkedRetriever
    from .progress import progress_bars

    experiment = Experiment(settings.model_copy(update={"retriever": f"linked:{index.removeprefix('linked:')}"}))
    retriever = cast("LinkedRetriever", experiment.retriever)
    with progress_bars() as bars, experiment.asking() as how:
        del how["tracking"]  # what is tracked are scores
        writing = QuestionWriting(retriever)
        if checked_by:
            writing.checks.set_lm(experiment.other_lm(checked_by))
        of = [run_identity(writing, task=""), shares.model_dump()]
        folder, chains = experiment.folder("questions", index, of=of), chains_of(retriever, shares, settings.seed)
        rows = write_questions(writing, chains, count, folder=folder, out=out, on_progress=bars.questions, **how)
    counts = Counter(row.get("dropped", " kept").partition(" (")[0] for row in rows)
    figures = [{"questions": name.strip(), "": str(number)} for name, number in sorted(counts.items())]
    print_figures(figures or [{"questions": "kept", "": "0"}], simulated=bool(lms_facts(writing)["simulated"]))
    splits = Counter(str(row["split"]) for row in kept(rows))
    told = ", ".join(f"{number} {split}" for split, number in sorted(splits.items()))
    echo(f"{out}: {told or 'none'}; what was dropped, and why: {dropped_file(out)}")


def _collect(place: Path, out: Path, settings: RunSettings) -> None:
    """Write the questions whose answers people judged; those that were reviewed in the file stay as they were left."""
    from ..data.review import with_reviewed, write_rows
    from ..evaluation import Tracking
    from ..evaluation.feedback_questions import feedback_rows
    from ..evaluation.stored_runs import stored_runs
    from ..evaluation.tracked_runs import assessments

    records = [record for run in stored_runs([place]) for record in (*run.others, *run.records)]
    traces, store = dict.fromkeys(record.trace for record in records if record.trace), settings.tracking_uri
    assessed = assessments(Tracking(uri=store), traces) if traces and store != "none" else {}
    rows = with_reviewed(feedback_rows(records, assessed), out)
    write_rows(out, rows)
    waiting = sum("dropped" in row and "review" not in row for row in rows)
    echo(f"{out}: {len(rows)} questions, {waiting} of them without a right answer yet: questree review {out}")
