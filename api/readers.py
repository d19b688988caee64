"""Training and calibration of readers, from what a user types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.errors import QuestreeError
from .experiments import build_tracking, use_lm
from .parts import build_reader, build_retriever
from .retrieval.calibrated import Calibrated, ReaderManifest, store, stored
from .settings import RunSettings

if TYPE_CHECKING:
    from .optimize.readers import (
        ReaderScores,
        Reading,
        ReadingExample,
        ThetaPoint,
        TrainedReader,
        TrainingProgress,
        TrainingSettings,
    )
    from .retrieval import Reader

Counted = Callable[[str, int, int], None]
"""Told what is being done, how many of it are done, and how many there are."""


@dataclass(frozen=True)
class DevQuestions:
    """The questions that choose a training's best weights.

    Attributes:
        task: as ``reading_examples`` takes it; None for the one that is trained on.
        split: theirs.
        limit: at most so many, from all over.
    """

    task: str | None = None
    split: str = "dev"
    limit: int = 200


@dataclass(frozen=True)
class CalibratedReader:
    """A reader's threshold, and what it was chosen on.

    Attributes:
        name: of the reader.
        folder: where the threshold is stored; name it as the reader. None where it was only to be shown.
        readings: that it was chosen on.
        chosen: the threshold, and how well it tells these readings apart.
        own: the threshold that the reader had.
        failed: calls that failed; they give no reading.
        scores: on other questions; None where there are none.
        simulated: whether a simulated LM did the reading.
        seen: questions that were left out, since the reader was trained on their passage.
    """

    name: str
    folder: Path | None
    readings: list[Reading]
    chosen: ThetaPoint
    own: float
    failed: int
    scores: ReaderScores | None
    simulated: bool
    seen: int = 0


def train_named(
    settings: RunSettings,
    training: TrainingSettings,
    *,
    encoder: str,
    split: str = "train",
    dev: DevQuestions | None = None,
    minutes: float | None = None,
    on_progress: Callable[[TrainingProgress], None] = lambda progress: None,
    on_mined: Counted = lambda what, done, total: None,
) -> TrainedReader:
    """Train a reader on the questions that the settings name; see `questree.optimize.readers.train_reader`.

    Args:
        settings: ``task`` and ``limit`` are of the questions to train on; ``retriever``, if any, finds the negatives.
        training: how.
        encoder: a BERT-like one, by name or folder.
        split: of the questions to train on.
        dev: of those that choose the weights.
        minutes: stop after so many.
        on_progress: called after every step.
        on_mined: called while negatives are looked for.

    Raises:
        QuestreeError: the questions cannot be read, or a question is to train and to choose at once.
    """
    from .optimize.readers import pairs_of, reading_examples, spread_out, train_reader

    dev = dev or DevQuestions()
    examples = reading_examples(settings.task, split, seed=settings.seed)[: settings.limit]
    held_out = reading_examples(dev.task or settings.task, dev.split, seed=settings.seed)
    if shared := {example.question for example in examples} & {example.question for example in held_out}:
        raise QuestreeError(f"{len(shared)} questions are to train and to choose by, {min(shared)!r} for one.")
    trained_on = {example.passage.text for example in examples}
    held_out = spread_out([one for one in held_out if one.passage.text not in trained_on] or held_out, dev.limit)
    facts = {
        "task": settings.task,
        "split": split,
        "dev": f"{len(held_out)} of {dev.task or settings.task}, {dev.split}",
    }
    if settings.retriever is not None:
        examples = _mined(examples, settings, on_mined)
        held_out = _mined(held_out, settings, on_mined)
        facts["negatives_of"] = str(settings.retriever)
    out, tracking = settings.out or Path("readers") / "reader", build_tracking(settings)
    params = {"encoder": encoder, **training.model_dump(), **facts}
    with tracking.run(f"train reader {out}", params) as tracked:
        return train_reader(
            examples,
            pairs_of(held_out, seed=settings.seed),
            out,
            encoder=encoder,
            settings=training,
            facts=facts,
            minutes=minutes,
            tracked=tracked,
            on_progress=on_progress,
        )


def calibrate_named(
    settings: RunSettings,
    *,
    test_split: str | None = "test",
    keep: bool = True,
    on_read: Counted = lambda what, done, total: None,
) -> CalibratedReader:
    """Choose the threshold of the settings' reader on their questions, and store it with the reader.

    Args:
        settings: ``reader``, ``task``, ``split`` and ``limit``; ``retriever``, if any, finds the passages that do not
            answer; ``out``, the folder for the threshold of a reader that is no folder itself.
        test_split: of the same tasks, to score the reader with its new threshold on; None for no such score.
        keep: whether to store it.
        on_read: called while passages are read.

    Raises:
        QuestreeError: the reader or the questions cannot be had, or there is nowhere to store the threshold.
    """
    from .optimize.readers import best_theta, plot_theta, score_readings

    folder = folder_of(settings.reader, settings.out, Path("readers"), ReaderManifest) if keep else None
    if test_split and {*test_split.split(",")} & {*settings.split.split(",")}:
        raise QuestreeError(
            f"Choose the threshold and score it on different splits, not {settings.split} and {test_split}."
        )
    splits = [split for split in (settings.split, test_split) if split]
    found = [_examples(settings, split) for split in splits]  # before a model is loaded: may be faulty
    reader, simulated = _any_reader(settings)
    readings, failed = _readings(reader, settings, settings.split, found[0][0], on_read)
    chosen, scores = best_theta(readings), None
    if test_split:
        held_out, failed_later = _readings(reader, settings, test_split, found[1][0], on_read)
        scores, failed = score_readings(held_out, chosen.theta), failed + failed_later
    calibrated = CalibratedReader(
        reader.name,
        folder,
        readings,
        chosen,
        reader.threshold,
        failed,
        scores,
        simulated,
        seen=sum(seen for _, seen in found),
    )
    if folder is not None:
        store(folder, _calibrated_manifest(settings, calibrated, test_split))
        tasks = ", ".join(Path(task).stem for task in settings.task.split(","))
        title = f"{Path(settings.reader).name} on {tasks} ({settings.split}): {len(readings)} passages"
        plot_theta(folder / "theta.png", readings, chosen, title + (", simulated LM" if simulated else ""))
    return calibrated


def _mined(examples: Sequence[ReadingExample], settings: RunSettings, on_mined: Counted) -> list[ReadingExample]:
    from .optimize.readers import mine_negatives

    retriever = build_retriever(settings)
    return mine_negatives(examples, retriever, on_progress=lambda done: on_mined("negatives", done, len(examples)))


def _examples(settings: RunSettings, split: str) -> tuple[list[ReadingExample], int]:
    """The questions of a split, and how many were left out, since the reader was trained on their passage."""
    from .optimize.readers import leave_out_seen, reading_examples, spread_out

    examples = reading_examples(settings.task, split, seed=settings.seed)
    fresh = leave_out_seen(examples, settings.reader)
    if not fresh:
        raise QuestreeError(f"{settings.reader} was trained on all passages of {settings.task}, {split}.")
    return spread_out(fresh, settings.limit or len(fresh)), len(examples) - len(fresh)


def _readings(
    reader: Reader, settings: RunSettings, split: str, examples: list[ReadingExample], on_read: Counted
) -> tuple[list[Reading], int]:
    from .optimize.readers import pairs_of, read_all

    if settings.retriever is not None:
        examples = _mined(examples, settings, on_read)
    pairs = pairs_of(examples, seed=settings.seed)
    return read_all(
        reader,
        pairs,
        concurrency=settings.concurrency,
        on_progress=lambda done: on_read(f"{split} passages", done, len(pairs)),
    )


def _any_reader(settings: RunSettings) -> tuple[Reader, bool]:
    """The reader, and whether a simulated LM is behind it."""
    reader = build_reader(settings)
    if reader is not None and reader.name != "lm":
        return reader, False
    from .evaluation.identity import lm_facts
    from .programs.modules import LMReader

    use_lm(settings)
    return reader or LMReader(), bool(lm_facts()["simulated"])


def folder_of(name: str, out: Path | None, default: Path, kind: type[Calibrated]) -> Path:
    """Where a threshold goes: into the model's own folder, if it has one."""
    own = Path(name).expanduser()
    if own.is_dir():
        if out not in (None, own):
            raise QuestreeError(f"{own} is a folder: its threshold is stored in it, not in {out}.")
        return own
    folder = out or default / name.replace("/", "-")
    if folder.is_dir() and any(folder.iterdir()) and stored(kind, folder) is None:
        raise QuestreeError(f"{folder} exists and holds something else; choose another --out.")
    return folder


def _calibrated_manifest(settings: RunSettings, calibrated: CalibratedReader, test_split: str | None) -> ReaderManifest:
    before = stored(ReaderManifest, settings.reader)
    if before is None:
        named = None if Path(settings.reader).expanduser().is_dir() else settings.reader
        before = ReaderManifest(kind="lm" if settings.reader == "lm" else "dpr", model=named)
    if before.kind == "lm":
        before = before.model_copy(update={"model": settings.lm})
    chosen, scores = calibrated.chosen, calibrated.scores
    facts: dict[str, Any] = {
        "task": settings.task,
        "split": settings.split,
        "negatives_of": str(settings.retriever) if settings.retriever else "other questions",
        "passages": len(calibrated.readings),
        "simulated": calibrated.simulated,
        "precision": chosen.precision,
        "recall": chosen.recall,
        "f1": chosen.f1,
    }
    if scores is not None:
        facts["held_out"] = {"split": test_split, "questions": scores.span_f1.n, **scores.figures()}
    return before.model_copy(update={"threshold": chosen.theta, "calibration": facts})
