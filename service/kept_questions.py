"""The questions that were asked, in a file of runs, so that their permalinks outlive the server."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from pydantic import ValidationError

from ..common.errors import QuestreeError
from ..evaluation.kept_run import match_run
from ..evaluation.records import Record
from ..evaluation.run_file import writing
from ..evaluation.stored_runs import records_of, steps_of
from ..lm.episode import EpisodeStep
from ..pages.asked_question import AskedQuestion
from ..programs import ReasoningTree

logger = logging.getLogger(__name__)


class KeptQuestions:
    """The questions of servers. Those of several servers may stand in one folder.

    Args:
        folder: is made if need be.
        most: how many are kept; beyond, the oldest are removed: at once, and each time a tenth as many were written.

    Raises:
        QuestreeError: if they cannot be kept there.
    """

    def __init__(self, folder: Path, most: int = 10_000):
        self._most, self._numbers = most, count(1)
        self._held: dict[str, AskedQuestion] = {}
        self._open = ExitStack()
        try:
            self._file = self._open.enter_context(writing(folder, "service", shared=True))
            self._make_room()
        except QuestreeError as error:
            told = f"Questions cannot be kept in {folder}: {error} Name another folder: --questions."
            raise QuestreeError(told) from error

    def keep(self, asked: AskedQuestion, steps: Sequence[EpisodeStep] | None = None) -> None:
        """Write a question that has ended, and what was asked for it (None: as it stands); several threads may.

        Raises:
            QuestreeError: if it cannot be written.
        """
        about = {"program": asked.program, "lm": {"simulated": asked.simulated}}
        name = f"{asked.program}, simulated" if asked.simulated else asked.program
        match_run(self._file, name, about).append(_record(asked), steps)
        if next(self._numbers) % max(1, self._most // 10) == 0:
            self._make_room()

    def hold(self, asked: AskedQuestion) -> None:
        """Keep a question that cannot be written in memory."""
        asked.kept = False
        self._held[asked.id] = asked

    def find(self, id: str) -> AskedQuestion | None:
        """Return a question, or None if none of this id can be read."""
        if id in self._held:
            return self._held[id]
        try:
            runs = "SELECT number, program, simulated FROM run JOIN questions ON run = number WHERE id = ?"
            for number, program, simulated in self._file.rows(runs, id):
                return _asked(records_of(self._file, number, id=id)[id], program, simulated=bool(simulated))
        except (QuestreeError, ValidationError, KeyError, ValueError):
            logger.warning("The question %s cannot be read.", id)
        return None

    def recent(self, most: int) -> list[AskedQuestion]:
        """Return the newest questions, the newest first; those that cannot be read are left out."""
        ids = self._file.rows("SELECT id FROM questions ORDER BY rowid DESC LIMIT ?", most)
        return [asked for (id,) in ids if (asked := self.find(id))]

    def steps(self, id: str) -> list[EpisodeStep]:
        """Return what was asked for a question."""
        runs = self._file.rows("SELECT run FROM questions WHERE id = ?", id)
        return steps_of(self._file, runs[0][0], id) if runs else []

    def _make_room(self) -> None:
        """Remove the oldest questions beyond the most that are kept."""
        newest = "SELECT rowid FROM questions ORDER BY rowid DESC LIMIT ?"
        if self._file.rows("SELECT count(*) FROM questions")[0][0] > self._most:
            self._file.write((f"DELETE FROM questions WHERE rowid NOT IN ({newest})", (self._most,)))
            self._file.sweep()


_SAME = ("id", "answer_style", "trace")
"""What a record and an asked question both have, beside the answer."""
_BESIDE = {"state", "asked_at", "said", "not_known", "about", "helpful", "note", "after"}
"""What an asked question has alone: the further fields of its record."""


def _record(asked: AskedQuestion) -> Record:
    same = {name: getattr(asked, name) for name in _SAME}
    beside = asked.model_dump(mode="json", include=_BESIDE)
    return Record(question=asked.tree.question, extras=beside, **asked.answer_fields, **same)


def _asked(record: Record, program: str, *, simulated: bool) -> AskedQuestion:
    beside = {name: value for name, value in record.extras.items() if name in _BESIDE}
    fields = record.answer_fields | {name: getattr(record, name) for name in _SAME} | beside
    fields["tree"] = record.tree or ReasoningTree(question=record.question)
    return AskedQuestion(program=program, simulated=simulated, **fields)
