"""questree train-reader"""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from ..optimize.readers.training_settings import TrainingSettings
from ..settings import RunSettings
from .screen import echo, print_figures


def train_reader(
    settings: Annotated[RunSettings, "task limit seed retriever tracking_uri out"],
    training: Annotated[TrainingSettings, "epochs", "batch_size", "learning_rate", "negatives", "window", "max_steps"],
    encoder: str = "embedded",
    split: str = "train",
    dev_split: str = "dev",
    dev_limit: Annotated[int, typer.Option(min=1)] = 200,
    minutes: Annotated[float | None, typer.Option(min=0.1)] = None,
) -> None:
    """Train a reader (DPR's: span and relevance heads on an encoder) on questions that come with their passage.

    --task takes tasks (nq,squad), JSONL files with paragraphs, and .json files as SQuAD 1.1 or DPR publish them. With
    --retriever, the passages that do not answer are those that it ranks highest, else other questions' passages.
    The same command goes on where it was interrupted.

    Args:
        encoder: A BERT-like encoder by name or folder; 'embedded' is MiniLM, offline.
        split: Split of the questions to train on, or several: train,test.
        dev_split: Split of the questions that choose the best weights.
        dev_limit: At most so many of these questions.
        minutes: Stop after so many minutes; the same command goes on. Default: no end.
    """
    from ..evaluation.leak import refuse_leak
    from ..optimize import readers
    from ..readers import Readers
    from .progress import progress_bars

    parts, seed = Readers(settings), settings.seed
    out = settings.out or Path("readers") / "reader"
    examples = readers.reading_examples(settings.task, split, seed=seed)
    examples = readers.spread_out(examples, settings.limit or len(examples))
    held_out = readers.reading_examples(settings.task, dev_split, seed=seed)
    refuse_leak({one.question for one in examples}, {one.question for one in held_out})
    texts = {one.passage.text for one in examples}
    held_out = readers.spread_out([one for one in held_out if one.passage.text not in texts] or held_out, dev_limit)
    dev = f"{len(held_out)} of {settings.task}, {dev_split}"
    facts = {"task": settings.task, "split": split, "dev": dev}
    if settings.retriever is not None:
        facts["negatives_of"] = settings.retriever
    training = training.model_copy(update={"seed": seed})
    params = {"encoder": encoder, **training.model_dump(), **facts}
    with progress_bars() as bars:
        examples, held_out = parts.mined(examples, bars.count), parts.mined(held_out, bars.count)
        with parts.tracking.run(f"train reader {out}", params) as tracked:
            trained = readers.train_reader(
                examples,
                readers.pairs_of(held_out, seed=seed),
                out,
                encoder=encoder,
                settings=training,
                facts=facts,
                minutes=minutes,
                tracked=tracked,
                on_progress=bars.training,
            )
    columns = {"mean_loss": "loss", "dev_em": "EM", "dev_span_f1": "span F1", "dev_relevance_f1": "relevance F1"}
    if trained.history:
        print_figures(
            [
                {"step": f"{look['step']:.0f}", **{heading: f"{look[key]:.3f}" for key, heading in columns.items()}}
                for look in trained.history
            ]
        )
    if trained.unanswerable:
        echo(f"left out: {trained.unanswerable} questions whose answer does not stand in their passage")
    if not trained.finished:
        echo(f"{trained.step} of {trained.steps} steps are done; the same command goes on from there")
    best = quote(str(trained.folder))
    echo(f"the best so far is {trained.folder}; choose its threshold: questree calibrate-reader {best}")
