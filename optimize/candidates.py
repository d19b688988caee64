"""The programs that an optimizer tried, kept on disk as soon as each is scored."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy.utils.callback import BaseCallback

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..programs import Program
from .artifact import state_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A program that an optimizer tried.

    Attributes:
        number: from 0, in the order in which they were scored.
        score: share of the questions answered well enough, from 0 to 1.
        questions: how many it was scored on; few for a minibatch.
        state: its demonstrations and instructions.
    """

    number: int
    score: float
    questions: int
    state: dict[str, Any]

    @property
    def demonstrations(self) -> int:
        """Of all its predictors together."""
        return sum(len(part["demos"]) for part in self.state.values())


class CandidateKeeper(BaseCallback):
    """Keeps each candidate the moment it is scored: an optimizer that is interrupted has kept nothing itself.

    Those that an interrupted compilation kept are expected again, in the same order. From the first that differs on
    (the LM or the metric answered otherwise, or the LM's replies were not kept), the former ones are put aside.

    Args:
        folder: one JSON file a candidate; None keeps them in memory alone.
        on_candidate: called with each, in the thread that compiles.

    Raises:
        QuestreeError: if the folder cannot be made.
    """

    def __init__(self, folder: Path | None, on_candidate: Callable[[Candidate], None]):
        self.folder, self.on_candidate = folder, on_candidate
        self.candidates: list[Candidate] = []
        self._programs: dict[str, Program] = {}
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise QuestreeError(f"Cannot keep candidates in {folder}: {error.strerror}.") from error

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """DSPy begins to score a candidate."""
        self._programs[call_id] = inputs["program"]

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """DSPy has scored it."""
        program = self._programs.pop(call_id)
        if outputs is not None and exception is None and isinstance(program, Program):
            self.keep(program, outputs.score / 100, len(outputs.results))

    def keep(self, program: Program, score: float, questions: int) -> None:
        """Keep a candidate."""
        candidate = Candidate(len(self.candidates), score, questions, state_of(program))
        self.candidates.append(candidate)
        try:
            if self.folder is not None:
                _keep(candidate, self.folder)
            self.on_candidate(candidate)
        except Exception as error:  # the optimizer goes on, and DSPy would swallow it
            logger.warning("Candidate %d was not kept: %s", candidate.number, error)

    def end(self) -> None:
        """The optimizer has tried all that it would."""
        if self.folder is not None:
            _put_aside(self.folder, len(self.candidates))


def _keep(candidate: Candidate, folder: Path) -> None:
    content = {"score": candidate.score, "questions": candidate.questions, "state": candidate.state}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    file = folder / f"{candidate.number:03}.json"
    if file.exists() and file.read_bytes() == text.encode():
        return
    _put_aside(folder, candidate.number)
    write_atomically(file, text)


def _put_aside(folder: Path, number: int) -> None:
    """The candidates from this number on, which another attempt has kept, into a folder of their own."""
    former = [file for file in _files(folder) if int(file.stem) >= number]
    if not former:
        return
    attempt = 1 + sum(1 for _ in folder.glob("attempt-*"))
    aside = folder / f"attempt-{attempt}"
    aside.mkdir()
    for file in former:
        file.rename(aside / file.name)
    logger.warning(
        "The optimizer went another way than before it was interrupted: %d candidates of then are now in %s.",
        len(former),
        aside,
    )


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.json"))


def read_candidates(folder: Path) -> tuple[Candidate, ...]:
    """The candidates that a `CandidateKeeper` kept in a folder.

    Raises:
        QuestreeError: if one is damaged; names it.
    """
    found = []
    for file in _files(folder):
        try:
            found.append(Candidate(int(file.stem), **json.loads(file.read_bytes())))
        except (ValueError, TypeError) as error:
            raise QuestreeError(f"{file} is damaged ({error}); delete it, and run again.") from error
    return tuple(found)
