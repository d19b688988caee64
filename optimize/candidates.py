"""The programs that an optimizer tried, kept on disk as soon as each is scored."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dspy.utils.callback import BaseCallback

from ..common.errors import QuestreeError
from ..common.json_files import validate
from ..evaluation.run_file import RunFile, WritableFile
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


class CandidateKeeper(BaseCallback):
    """Keeps each candidate as soon as it is scored, since an optimizer that is interrupted keeps nothing itself.

    When an interrupted compilation is resumed, the same candidates come again in the same order, and replace those
    that are there.

    Args:
        file: of the compilation.
        on_candidate: called with each candidate, in the thread that compiles.
    """

    def __init__(self, file: WritableFile, on_candidate: Callable[[Candidate], None]):
        self.file, self.on_candidate = file, on_candidate
        self.candidates: list[Candidate] = []
        self._programs: dict[str, Program] = {}

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Note which candidate DSPy begins to score."""
        self._programs[call_id] = inputs["program"]

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Keep the candidate that DSPy has scored."""
        program = self._programs.pop(call_id)
        if outputs is not None and exception is None and isinstance(program, Program):
            self.keep(program, outputs.score / 100, len(outputs.results))

    def keep(self, program: Program, score: float, questions: int) -> None:
        """Keep a candidate with its score and the number of questions behind it."""
        candidate = Candidate(len(self.candidates), score, questions, state_of(program))
        self.candidates.append(candidate)
        try:
            state, texts = self.file.kept(json.loads(to_json(candidate.state)))
            row = (candidate.number, score, questions, state)
            self.file.write(*texts, ("INSERT OR REPLACE INTO candidates VALUES (?, ?, ?, ?)", row))
            self.on_candidate(candidate)
        except Exception as error:  # the optimizer goes on; DSPy would swallow the error
            logger.warning("Candidate %d was not kept: %s", candidate.number, error)

    def end(self) -> None:
        """Remove the candidates of an earlier attempt that this attempt, now ended, did not try."""
        self.file.write(("DELETE FROM candidates WHERE number >= ?", (len(self.candidates),)))


def read_candidates(file: RunFile) -> tuple[Candidate, ...]:
    """Return the candidates that a `CandidateKeeper` kept in a file."""
    found = []
    for number, score, questions, state in file.rows("SELECT * FROM candidates ORDER BY number"):
        try:
            whole = file.value(state)
            validate(ProgramState, whole)
        except ValueError as error:
            raise QuestreeError(
                f"{file.path}: candidate {number} is damaged ({error}); name another folder."
            ) from error
        found.append(Candidate(number, float(score), int(questions), whole))
    return tuple(found)
