"""Training a reader as DPR's was trained (Karpukhin et al., EMNLP 2020, section 6.1); it can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from ...common.files import alone_in, refuse_link, write_atomically
from ...common.json_files import validate
from ...common.manifests import ManifestKind
from ...evaluation.identity import digest
from ...evaluation.kept_run import check_same
from ...evaluation.tracking import UNTRACKED, TrackedRun
from ...retrieval.calibrated import ReaderManifest, folder_of
from ...retrieval.checkpoints import EMBEDDED
from .batches import character_spans
from .examples import ReadingExample
from .readings import Pair
from .training_loop import TrainingLoop, TrainingProgress
from .training_settings import TrainingSettings

_KIND = ManifestKind("training", 1, "delete it and run again, or name another folder")
_FILE = "run.json"


@dataclass(frozen=True)
class TrainedReader:
    """The result of a training.

    Attributes:
        step: steps that are done, of ``steps``.
        unanswerable: questions that were left out, since none of their answers stands in their passage.
    """

    folder: Path
    step: int
    steps: int
    history: list[dict[str, float]]
    unanswerable: int

    @property
    def finished(self) -> bool:
        """Return whether all steps are done; if not, the same call goes on."""
        return self.step >= self.steps


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
    """Train a reader, or resume the training that was interrupted in this folder.

    After each epoch, and at the end, the dev pairs are read; from then on the folder holds a reader with the best
    weights so far. A run that is killed loses the steps since its last checkpoint. Once it is resumed it gives the
    same weights as a run that was not killed (on a CPU, with the same number of threads).

    Args:
        dev: pairs that choose the weights, and a first theta.
        out: the reader's folder; its training lies in ``training`` beneath.
        encoder: a BERT-like encoder by hub name or folder; ``embedded`` is MiniLM, which comes with a package.
        settings: see `TrainingSettings`.
        facts: for the manifest: where the questions and negatives are from.
        minutes: stop after so many, keep everything, and go on when called again.
        on_progress: called after every step.
    """
    settings = settings or TrainingSettings()
    usable = [example for example in examples if character_spans(example)]
    if not usable:
        raise QuestreeError(f"None of {len(examples)} questions has an answer that stands in its passage.")
    folder = out / "training"
    refuse_link(folder)
    about = {
        "format": 1,
        "encoder": encoder,
        **settings.model_dump(),
        "questions": digest([repr(example) for example in usable]),
        "dev": digest([repr(pair) for pair in dev]),
        "passages": sorted({digest(example.passage.text) for example in usable}),
    }
    # loads the encoder, before the folder is made: one that cannot be had leaves nothing behind
    loop = TrainingLoop(usable, dev, out, encoder, settings, facts or {}, tracked)
    with alone_in(folder, "the training"):
        if (folder / _FILE).exists():
            there = _KIND.read(folder / _FILE, dict) | {
                "passages": about["passages"]
            }  # the questions' digest tells them
            check_same(str(folder), there, about)
        else:
            write_atomically(folder / _FILE, json.dumps(about, indent=2, ensure_ascii=False))
        loop.resume(minutes, on_progress)
    return TrainedReader(out, loop.step, loop.steps, loop.history, len(examples) - len(usable))


def leave_out_seen(examples: Sequence[ReadingExample], reader: str | Path) -> list[ReadingExample]:
    """Return the examples whose passage a reader was not trained on: data sets ask several questions of one passage.

    Args:
        reader: a folder of `train_reader`; of any other reader nothing is known, and all examples are kept.
    """
    folder = folder_of(ReaderManifest, reader)
    if folder is None or not (folder / "training" / _FILE).exists():
        return list(examples)
    file = folder / "training" / _FILE
    seen = set(_KIND.read(file, lambda content: validate(list[str], content["passages"])))
    return [example for example in examples if digest(example.passage.text) not in seen]
