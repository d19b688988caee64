"""The programs that an optimizer tried, kept on disk as soon as each is scored."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy.utils.callback import BaseCallback
from pydantic import BaseModel, ConfigDict, JsonValue

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..common.json_files import parse_json, read_bytes, validate
from ..programs import Program
from ..programs.states import ProgramState, state_of, to_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A program that an optimizer tried.

    Attributes:
        number: from 0, in the order in which they were scored.
        score: the mean score of the questions, from 0 to 1.
        questions: how many it was scored on; few for a minibatch.
        state: its demonstrations and instructions.
    """

    number: int
    score: float
    questions: int
    state: dict[str, Any]

    @property
    def demonstrations(self) -> int:
        """Return the number of demonstrations of all its predictors together."""
        return sum(len(part["demos"]) for part in self.state.values())


class CandidateKeeper(BaseCallback):
    """Keeps each candidate as soon as it is scored, since an optimizer that is interrupted keeps nothing itself.

    When an interrupted compilation goes on, its candidates are expected again, in the same order. If one differs (the
    LM or the metric answered otherwise, or the LM's replies were not kept), it and the later ones are put aside.

    Args:
        folder: for one JSON file a candidate; None keeps candidates in memory alone.
        on_candidate: called with each candidate, in the thread that compiles.

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
        """Note which candidate DSPy begins to score."""
        self._programs[call_id] = inputs["program"]

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Keep the candidate that DSPy has scored."""
        program = self._programs.pop(call_id)
        if outputs is not None and exception is None and isinstance(program, Program):
            self.keep(program, outputs.score / 100, len(outputs.results))

    def keep(self, program: Program, score: float, questions: int) -> None:
        """Keep a candidate with its score on so many questions."""
        candidate = Candidate(len(self.candidates), score, questions, state_of(program))
        self.candidates.append(candidate)
        try:
            if self.folder is not None:
                _keep(candidate, self.folder)
            self.on_candidate(candidate)
        except Exception as error:  # the optimizer goes on, and DSPy would swallow it
            logger.warning("Candidate %d was not kept: %s", candidate.number, error)

    def end(self) -> None:
        """Put aside what another attempt kept beyond these candidates: the optimizer has tried all that it will."""
        if self.folder is not None:
            _put_aside(self.folder, len(self.candidates))


def _keep(candidate: Candidate, folder: Path) -> None:
    text = to_json({"score": candidate.score, "questions": candidate.questions, "state": candidate.state})
    file = folder / f"{candidate.number:03}.json"
    if not _holds(file, text):
        _put_aside(folder, candidate.number)
        write_atomically(file, text)


def _holds(file: Path, text: str) -> bool:
    try:
        return read_bytes(file) == text.encode()
    except (OSError, ValueError):
        return False


def _put_aside(folder: Path, number: int) -> None:
    """Move the candidates from this number on, which another attempt kept, into a folder of their own."""
    former = [file for there, file in _files(folder) if there >= number]
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


def _files(folder: Path) -> list[tuple[int, Path]]:
    return sorted((int(file.stem), file) for file in folder.glob("*.json") if re.fullmatch("[0-9]{3,9}", file.stem))


class _Saved(BaseModel):
    """A candidate as it stands in its file."""

    model_config = ConfigDict(extra="forbid")

    score: float
    questions: int
    state: dict[str, JsonValue]


def read_candidates(folder: Path) -> tuple[Candidate, ...]:
    """Return the candidates that a `CandidateKeeper` kept in a folder.

    Raises:
        QuestreeError: if one is damaged; names it.
    """
    found = []
    for number, file in _files(folder):
        try:
            saved = validate(_Saved, parse_json(read_bytes(file)))
            validate(ProgramState, saved.state)
        except (OSError, ValueError) as error:
            raise QuestreeError(f"{file} is damaged ({error}); delete it, and run again.") from error
        found.append(Candidate(number, saved.score, saved.questions, saved.state))
    return tuple(found)
