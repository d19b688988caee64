"""The reader that settings name: passages that do not answer, and a threshold that is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.errors import QuestreeError
from .parts import Parts
from .retrieval.calibrated import ReaderManifest, folder_of, store, stored

if TYPE_CHECKING:
    from .metrics import Interval
    from .optimize.readers import ReaderScores, Reading, ReadingExample, ThetaPoint
    from .retrieval import Reader
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
    """The reader that the settings name, and questions to try it on."""

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
        folder, manifest = _kept_for(settings.reader, settings.out)
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


def _kept_for(name: str, out: Path | None) -> tuple[Path, ReaderManifest]:
    """Return the folder that a threshold goes into, the reader's own if it has one, and the manifest of the reader."""
    own = folder_of(name)
    if own is not None and out not in (None, own):
        raise QuestreeError(f"{own} is a folder: its threshold is stored in it, not in {out}.")
    folder = own or out or Path("readers") / name.replace("/", "-")
    others = [one for one in folder.iterdir() if not one.name.startswith("runs.db")] if folder.is_dir() else []
    if own is None and others and stored(folder) is None:
        raise QuestreeError(f"{folder} exists and holds something else; choose another --out.")
    new = ReaderManifest(kind="lm" if name == "lm" else "dpr", model=None if own else name)
    return folder, stored(name) or new
