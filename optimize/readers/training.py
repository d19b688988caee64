"""Training a reader as DPR's was (Karpukhin et al., EMNLP 2020, section 6.1), resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from ...common.files import alone_in, write_atomically
from ...evaluation.identity import digest
from ...evaluation.run_folder import claim
from ...evaluation.tracking import UNTRACKED, TrackedRun
from ...retrieval.late_interaction.checkpoint import EMBEDDED
from .batches import character_spans
from .calibration import Pair
from .examples import ReadingExample
from .training_plan import TrainedReader, TrainingProgress, TrainingSettings
from .training_run import TrainingRun

_PASSAGES = "passages.json"  # what it was trained on, by hash


def train_reader(
    examples: Sequence[ReadingExample],
    dev: Sequence[Pair],
    out: Path,
    *,
    encoder: str = EMBEDDED,
    settings: TrainingSettings | None = None,
    facts: dict[str, Any] | None = None,
    minutes: float | None = None,
    tracked: TrackedRun = UNTRACKED,
    on_progress: Callable[[TrainingProgress], None] = lambda progress: None,
) -> TrainedReader:
    """Train a reader, or go on with the training that was interrupted in this folder.

    After each epoch (and at the end) the dev pairs are read; the best weights so far are the folder's reader, from
    the first look on. A run that is killed loses the steps since its last checkpoint, and gives, once it is gone on
    with, the same weights as one that was not (on a CPU, with as many threads).

    Args:
        examples: to train on.
        dev: to choose the weights by, and a first theta.
        out: the reader's folder; its training lies in ``training`` beneath.
        encoder: a BERT-like encoder by hub name or folder; ``embedded`` is MiniLM, which comes with a package.
        settings: see `TrainingSettings`.
        facts: for the manifest: where the questions and negatives are from.
        minutes: stop after so many, keep everything, and go on when called again.
        tracked: the run that the figures are logged to.
        on_progress: called after every step.

    Raises:
        QuestreeError: the folder holds another training, another process is at it, no question can be trained on, or
            the disk is full.
        CheckpointError: the encoder cannot be had.
    """
    settings = settings or TrainingSettings()
    usable = [example for example in examples if character_spans(example)]
    if not usable:
        raise QuestreeError(f"None of {len(examples)} questions has an answer that stands in its passage.")
    folder = out / "training"
    identity = {
        "encoder": encoder,
        **settings.model_dump(),
        "questions": digest([repr(example) for example in usable]),
        "dev": digest([repr(pair) for pair in dev]),
    }
    run = TrainingRun(
        usable, dev, out, encoder, settings, facts or {}, tracked
    )  # an encoder that is none leaves nothing
    with alone_in(folder, "the training"):
        claim(folder / "run.json", identity)
        write_atomically(folder / _PASSAGES, json.dumps(sorted({_known(one) for one in usable})))
        run.go_on(minutes, on_progress)
    return TrainedReader(out, run.state.step, run.steps, run.state.history, len(examples) - len(usable))


def unseen(examples: Sequence[ReadingExample], reader: str | Path) -> list[ReadingExample]:
    """The examples whose passage a reader was not trained on: data sets ask several questions of one passage.

    Args:
        examples: any.
        reader: a folder of ``train_reader``; of any other reader nothing is known, and all examples are kept.

    Raises:
        QuestreeError: the folder's record of its passages is damaged.
    """
    file = Path(reader).expanduser() / "training" / _PASSAGES
    if not file.is_file():
        return list(examples)
    try:
        trained_on = set(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError) as problem:
        raise QuestreeError(f"{file} is damaged ({problem}); train the reader again.") from problem
    return [example for example in examples if _known(example) not in trained_on]


def _known(example: ReadingExample) -> str:
    return digest(example.passage.text)
