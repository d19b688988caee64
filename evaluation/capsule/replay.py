"""Replay a capsule: the present code runs on the stored outcomes, and no LM, retriever or reader is asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import dspy

from ...lm.episode import EpisodeStep, replaying
from ...lm.limits import Limits, limited
from ...metrics import METRICS, metric
from ...programs import REGISTRY, Program
from ..record_scores import score
from ..records import Record
from ..run import answer
from ..stored_runs import StoredRun, open_runs
from .differences import Difference, answer_differences, step_differences
from .restored import adapter_of, program_of
from .stand_ins import stand_in_lm, stand_in_parts


@dataclass(frozen=True)
class ReplayedQuestion:
    """A question that was replayed.

    Attributes:
        record: its new record; None if the program asked for something that is not stored.
        differences: in the order of the program.
        skipped: why it was not replayed.
    """

    stored: Record
    record: Record | None
    differences: tuple[Difference, ...] = ()
    skipped: str | None = None

    @property
    def same(self) -> bool:
        """Return whether it was replayed and its record is the same."""
        return not self.differences and self.skipped is None


@dataclass(frozen=True)
class ReplayedRun:
    """A run that was replayed, with its questions in their order; ``simulated`` if the simulated LM answered it."""

    name: str
    simulated: bool
    questions: tuple[ReplayedQuestion, ...]

    @property
    def differing(self) -> list[ReplayedQuestion]:
        """Return the questions that differ."""
        return [one for one in self.questions if one.differences]


def replay(path: Path, allow_code: Iterable[str] = ()) -> list[ReplayedRun]:
    """Ask every question of a capsule again, with the present code and the stored outcomes.

    Args:
        allow_code: programs of other packages that the capsule may name, as ``package:name``.
    """
    for name in allow_code:
        REGISTRY.allow(name)
    return list(map(_replayed, open_runs(path)))


def _replayed(run: StoredRun) -> ReplayedRun:
    with dspy.context(lm=stand_in_lm(run), adapter=adapter_of(run), trace=[]):
        program = program_of(run, **stand_in_parts(run))
        questions = tuple(_asked_again(program, record, run) for record in run.records)
    return ReplayedRun(run.name, run.simulated, questions)


def _asked_again(program: Program, stored: Record, run: StoredRun) -> ReplayedQuestion:
    if stored.failure is not None and stored.failure.cause == "deadline":
        return ReplayedQuestion(stored, None, skipped="its time was over, which no replay repeats")
    source = _Stored(run.steps(stored.id))
    limits = run.limits(stored.id) or Limits()  # this question's limits: a run may be resumed under others
    limits = Limits(retries=limits.retries, window=limits.window or run.environment.window)
    try:
        with limited(limits), replaying(source):
            now, _ = answer(program, stored.example)
    except _NotStoredError:
        return ReplayedQuestion(stored, None, source.differences())
    now = score(now, stored.example, [metric(name) for name in stored.scores if name in METRICS])
    differences = source.differences() or answer_differences(stored, now)
    if not differences and any(now.scores[name] != stored.scores[name] for name in now.scores):
        differences = (Difference(by="scores", text=f"{stored.scores} → {now.scores}"),)
    return ReplayedQuestion(stored, now, differences)


class _NotStoredError(BaseException):
    """The program asks for something that is not stored; no step may catch this as a failure of the LM."""


class _Stored:
    """The stored steps of one question, and the steps that its replay has begun."""

    def __init__(self, steps: list[EpisodeStep]):
        self.steps, self.begun = steps, list[EpisodeStep]()
        self._at = {one.place: one for one in steps}

    def take(self, begun: EpisodeStep) -> EpisodeStep:
        """Return the stored step; a changed prompt gets its stored reply, so that what follows can be compared."""
        self.begun.append(begun)
        stored = self._at.get(begun.place)
        if stored is None or (stored.kind, stored.name) != (begun.kind, begun.name):
            raise _NotStoredError
        return stored

    def differences(self) -> tuple[Difference, ...]:
        """Return where the steps differ, in the order of the program."""
        return tuple(step_differences(self.steps, self.begun, live=False))
