"""Readers and duplicate checks that settings name: passages that do not answer, and thresholds that are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .common.errors import QuestreeError
from .parts import Parts
from .retrieval.calibrated import Calibrated, DuplicatesManifest, ReaderManifest, folder_of, store, stored

if TYPE_CHECKING:
    from .metrics import Interval
    from .optimize.readers import ReaderScores, Reading, ReadingExample, ThetaPoint
    from .retrieval import Reader

_Manifest = TypeVar("_Manifest", bound=Calibrated)
Count = Callable[[str, int, int], None]
"""Called with what is being done, how many of it are done, and how many there are."""


@dataclass(frozen=True)
class Calibration:
    """The threshold of a reader or a duplicate check, and what it was chosen on.

    Attributes:
        folder: where the threshold is stored; name it as the reader or the check.
        readings: the readings that it was chosen on; of a check, how alike the pairs are.
        scores: a reader's, on other questions; None where there are none.
        f1: a check's, on the other half of the pairs; None where that has none.
        failed: calls that failed; they give no reading.
        simulated: whether a simulated LM did the reading.
    """

    name: str
    folder: Path
    readings: list[Reading]
    chosen: ThetaPoint
    own: float
    scores: ReaderScores | None = None
    f1: Interval | None = None
    failed: int = 0
    simulated: bool = False


class Readers(Parts):
    """The reader and the duplicate check that the settings name, and questions to try them on."""

    def mined(self, examples: list[ReadingExample], on_mined: Count) -> list[ReadingExample]:
        """Return the examples with passages that the settings' retriever, if any, finds and that do not answer."""
        from .optimize.readers import mine_negatives

        if self.settings.retriever is None:
            return examples
        told = partial(on_mined, "negatives")
        return mine_negatives(examples, self.retriever, on_progress=lambda done: told(done, len(examples)))

    def calibrate(self, test_split: str | None, on_read: Count) -> Calibration:
        """Choose the threshold of the settings' reader on their questions, and store it with the reader.

        A reader that is no folder itself gets the settings' ``out``.

        Args:
            test_split: of the same tasks, to score the reader with its new threshold on; None for no such score.
            on_read: called while passages are read.
        """
        from .evaluation.leak import refuse_leak
        from .evaluation.run_file import writing
        from .lm.account import Account
        from .optimize.readers import best_theta, plot_theta, score_readings

        settings = self.settings
        model_kind = "lm" if settings.reader == "lm" else "dpr"
        folder, manifest = _kept_for(ReaderManifest, settings.reader, model_kind, settings.out, Path("readers"))
        # before a model is loaded: they may be faulty
        examples = self._examples(settings.split)
        held_out = self._examples(test_split) if test_split else []
        refuse_leak({one.question for one in examples}, {one.question for one in held_out})
        reader, simulated = self._reader_or_lm()
        with writing(folder, "calibration", shared=True) as file, Account(file).open() as account:

            def counted(what: str, done: int, most: int) -> None:
                on_read(what, done, most)
                if done < most:
                    account.check_budget(settings.policy)

            readings, failed = self._read(reader, settings.split, examples, counted)
            chosen, scores = best_theta(readings), None
            if test_split:
                others, failed_later = self._read(reader, test_split, held_out, counted)
                scores, failed = score_readings(others, chosen.theta), failed + failed_later
        facts: dict[str, Any] = {
            **{"task": settings.task, "split": settings.split, "negatives_of": settings.retriever or "other questions"},
            **{"passages": len(readings), "simulated": simulated},
            **{"precision": chosen.precision, "recall": chosen.recall, "f1": chosen.f1},
        }
        if scores is not None:
            facts["held_out"] = {"split": test_split, "questions": scores.span_f1.n, **scores.figures()}
        model = settings.lm if manifest.kind == "lm" else manifest.model
        changed = {"threshold": chosen.theta, "calibration": facts, "model": model}
        store(folder, manifest.model_copy(update=changed))
        tasks = ", ".join(Path(task).stem for task in settings.task.split(","))
        title = f"{Path(settings.reader).name} on {tasks} ({settings.split}): {len(readings)} passages"
        plot_theta(folder / "theta.png", readings, chosen, title + (", simulated LM" if simulated else ""))
        found: dict[str, Any] = {"scores": scores, "failed": failed, "simulated": simulated}
        return Calibration(reader.name, folder, readings, chosen, reader.threshold, **found)

    def calibrate_duplicates(self, pairs: Path, on_read: Count) -> Calibration:
        """Choose the threshold of the settings' duplicate check on half of the pairs, score it on the others, store it.

        Args:
            on_read: called while pairs are compared.
        """
        from .optimize.readers import best_theta, plot_theta
        from .optimize.readers.readings import compare_all, read_pairs
        from .optimize.readers.thresholds import relevance_interval

        check: Any = self.duplicates
        if check is None:
            raise QuestreeError("The check by words has no threshold: name a cross-encoder, or `retriever`.")
        name = self.settings.duplicates
        model_kind = "retriever" if name == "retriever" else "cross-encoder"
        folder, manifest = _kept_for(DuplicatesManifest, name, model_kind, self.settings.out, Path("duplicates"))
        found = read_pairs(pairs)
        compared = compare_all(check.likeness, found, on_progress=lambda done: on_read("pairs", done, len(found)))
        readings, others = (
            [reading for pair, reading in zip(found, compared, strict=True) if pair.held_out is held_out]
            for held_out in (False, True)
        )
        chosen = best_theta(readings)
        f1 = relevance_interval(others, chosen.theta) if others else None
        facts: dict[str, Any] = {"pairs": len(readings), "of": pairs.name, "f1": chosen.f1}
        if name == "retriever":
            facts["retriever"] = str(self.settings.retriever)
        if f1 is not None:
            facts["held_out"] = {"pairs": f1.n, "f1": f1.mean, "f1_low": f1.low, "f1_high": f1.high}
        store(folder, manifest.model_copy(update={"threshold": chosen.theta, "calibration": facts}))
        plot_theta(folder / "threshold.png", readings, chosen, f"{check.name} on {len(readings)} pairs", x="threshold")
        return Calibration(check.name, folder, readings, chosen, check.threshold, f1=f1)

    def _examples(self, split: str) -> list[ReadingExample]:
        """Return questions of a split, each with its passage."""
        from .optimize.readers import reading_examples, spread_out

        examples = reading_examples(self.settings.task, split, seed=self.settings.seed)
        return spread_out(examples, self.settings.limit or len(examples))

    def _read(
        self, reader: Reader, split: str, examples: list[ReadingExample], on_read: Count
    ) -> tuple[list[Reading], int]:
        """Return the reader's readings of questions of a split, and how many of its calls failed."""
        from .optimize.readers import pairs_of, read_all

        pairs, concurrency = pairs_of(self.mined(examples, on_read), seed=self.settings.seed), self.settings.concurrency
        told = partial(on_read, f"{split} passages")
        return read_all(reader, pairs, concurrency=concurrency, on_progress=lambda done: told(done, len(pairs)))

    def _reader_or_lm(self) -> tuple[Reader, bool]:
        """Return the reader, and whether a simulated LM is behind it."""
        if self.reader is not None and self.reader.name != "lm":
            return self.reader, False
        from .evaluation.identity import lm_facts
        from .programs.modules.reader import LMReader

        self.use_lm()
        return self.reader or LMReader(), bool(lm_facts()["simulated"])


def _kept_for(
    kind: type[_Manifest], name: str, model_kind: str, out: Path | None, beside: Path
) -> tuple[Path, _Manifest]:
    """Return the folder that a threshold goes into, the model's own if it has one, and the manifest of the model."""
    own = folder_of(kind, name)
    if own is not None and out not in (None, own):
        raise QuestreeError(f"{own} is a folder: its threshold is stored in it, not in {out}.")
    folder = own or out or beside / name.replace("/", "-")
    others = [one for one in folder.iterdir() if not one.name.startswith("runs.db")] if folder.is_dir() else []
    if own is None and others and stored(kind, folder) is None:
        raise QuestreeError(f"{folder} exists and holds something else; choose another --out.")
    new = {"kind": model_kind, "model": None if own else name}
    return folder, stored(kind, name) or kind.model_validate(new)
