"""The threshold of the reader that settings name: chosen on questions, and stored with the reader."""

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
    from .data import Question
    from .optimize.theta import Reading, ThetaPoint
    from .retrieval import Reader
Count = Callable[[str, int, int], None]
"""Called with what is being done, how many of it are done, and how many there are."""


@dataclass(frozen=True)
class Calibration:
    """The threshold of a reader, and what it was chosen on.

    Attributes:
        folder: where the threshold is stored; name it as the reader.
        readings: those that it was chosen on.
        own: the threshold that the reader had.
        held_out: what the chosen one is worth on other questions; None where there are none.
        failed: calls that failed; they give no reading.
        simulated: whether a simulated LM did the reading.
    """

    name: str
    folder: Path
    readings: list[Reading]
    chosen: ThetaPoint
    own: float
    held_out: ThetaPoint | None
    failed: int
    simulated: bool


class Readers(Parts):
    """The reader that the settings name, and questions to try it on."""

    def calibrate(self, test_split: str | None, on_read: Count) -> Calibration:
        """Choose the threshold of the settings' reader on their questions, and store it with the reader.

        A reader that is no folder itself gets the settings' ``out``.

        Args:
            test_split: of the same task, to try the new threshold on; None for no such figures.
            on_read: called while passages are read.
        """
        from .evaluation.leak import refuse_leak
        from .evaluation.run_file import writing
        from .lm.account import Account
        from .optimize.theta import best_theta, theta_sweep

        settings = self.settings
        folder, manifest = _kept_for(settings.reader, settings.out)
        # before a model is loaded: they may be faulty
        asked, held_out = self._questions(settings.split), self._questions(test_split) if test_split else []
        refuse_leak({one.question for one in asked}, {one.question for one in held_out})
        reader, simulated = self._reader_or_lm()
        with writing(folder, "calibration", shared=True) as file, Account(file).open() as account:

            def counted(what: str, done: int, most: int) -> None:
                on_read(what, done, most)
                if done < most:
                    account.check_budget(settings.policy)

            readings, failed = self._read(reader, asked, settings.split, counted)
            chosen, worth = best_theta(readings), None
            if test_split:
                others, failed_later = self._read(reader, held_out, test_split, counted)
                (worth,), failed = theta_sweep(others, [chosen.theta]), failed + failed_later
        facts: dict[str, Any] = {
            **{"task": settings.task, "split": settings.split, "negatives_of": settings.retriever or "other questions"},
            **{"passages": len(readings), "simulated": simulated},
            **{"precision": chosen.precision, "recall": chosen.recall, "f1": chosen.f1},
        }
        if worth is not None:
            facts["held_out"] = {"split": test_split, "questions": len(held_out), **vars(worth)}
        model = settings.lm if manifest.kind == "lm" else manifest.model
        changed = {"threshold": chosen.theta, "calibration": facts, "model": model}
        store(folder, manifest.model_copy(update=changed))
        return Calibration(reader.name, folder, readings, chosen, reader.threshold, worth, failed, simulated)

    def _questions(self, splits: str) -> list[Question]:
        """Return questions of a split, or of several."""
        return [one for split in splits.split(",") for one in self.task.split(split.strip())][: self.settings.limit]

    def _read(self, reader: Reader, questions: list[Question], split: str, on_read: Count) -> tuple[list[Reading], int]:
        """Return the reader's readings of questions of a split, and how many of its calls failed."""
        from .optimize.theta import pairs_of, read_all

        settings = self.settings
        pairs = pairs_of(questions, self.retriever if settings.retriever else None, seed=settings.seed)
        told = partial(on_read, f"{split} passages")
        concurrency = settings.concurrency
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
