"""questree train-reader"""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings

SETTINGS = ("task", "limit", "seed", "retriever", "tracking_uri", "out")


def train_reader(
    settings: "RunSettings",
    encoder: Annotated[
        str, typer.Option(help="A BERT-like encoder by name or folder; 'embedded' is MiniLM, offline.")
    ] = "embedded",
    split: Annotated[str, typer.Option(help="Split of the questions to train on, or several: train,test.")] = "train",
    dev_task: Annotated[
        str | None, typer.Option(help="Task of the questions that choose the best weights. Default: --task.")
    ] = None,
    dev_split: Annotated[str, typer.Option(help="Split of the questions that choose the best weights.")] = "dev",
    dev_limit: Annotated[int, typer.Option(min=1, help="At most so many of these questions.")] = 200,
    epochs: Annotated[int, typer.Option(min=1, help="Times that each question is seen.")] = 3,
    batch_size: Annotated[int, typer.Option(min=1, help="Questions in a step.")] = 4,
    learning_rate: Annotated[float, typer.Option(min=1e-9, help="Highest learning rate.")] = 1e-4,
    negatives: Annotated[int, typer.Option(min=1, help="Passages that do not answer, for each question.")] = 2,
    window: Annotated[int, typer.Option(min=16, help="Tokens of question, title and text that are read.")] = 256,
    max_steps: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many steps. Default: after all epochs.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.1, help="Stop after so many minutes; the same command goes on. Default: no end."),
    ] = None,
) -> None:
    """Train a reader (DPR's: span and relevance heads on an encoder) on questions that come with their passage.

    --task takes tasks (nq,squad), JSONL files with paragraphs, and .json files as SQuAD 1.1 or DPR publish them. With
    --retriever, the passages that do not answer are those that it ranks highest, else other questions' passages.
    The same command goes on where it was interrupted.
    """
    from ..optimize.readers import TrainingSettings
    from ..reader_experiments import ReaderExperiment
    from .report import print_looks, training_bars

    training = TrainingSettings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        negatives=negatives,
        window=window,
        max_steps=max_steps,
        seed=settings.seed,
    )
    with training_bars() as (on_mined, on_progress):
        trained = ReaderExperiment(settings).train(
            training,
            encoder=encoder,
            split=split,
            dev_task=dev_task,
            dev_split=dev_split,
            dev_limit=dev_limit,
            minutes=minutes,
            on_progress=on_progress,
            on_mined=on_mined,
        )
    print_looks(trained.history)
    if trained.unanswerable:
        echo(f"left out: {trained.unanswerable} questions whose answer does not stand in their passage")
    if not trained.finished:
        echo(f"{trained.step} of {trained.steps} steps are done; the same command goes on from there")
    best = quote(str(trained.folder))
    echo(f"the best so far is {trained.folder}; choose its threshold: questree calibrate-reader {best}")
