"""The present code over what a capsule holds: no LM, no retriever and no reader is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...lm.exchanges import Exchange
from ...lm.guard import ADAPTERS, adapter_named
from ...lm.limits import limited
from ...lm.outcomes import replaying
from ...lm.policy import Limits
from ...metrics import METRICS, metric
from ...programs import Program
from ...programs.modules.reader import LMReader
from ...programs.registry import REGISTRY, build
from ..records import Record, score
from ..run import answer
from .differences import Difference, LeftError, answer_differences, changed, left, unasked
from .packed_run import PackedRun, read_runs
from .stand_ins import StoredDuplicates, StoredReader, StoredRetriever, unasked_lm
from .texts import Texts, record_differences

_ADAPTERS = {kind.__name__: name for name, kind in ADAPTERS.items()}


@dataclass(frozen=True)
class ReplayedQuestion:
    """What came of a question in a replay.

    Attributes:
        stored: its record in the capsule.
        record: its record now; None if the program asked for something that was not asked.
        differences: in the order of the program; none if the records are the same.
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
    """A run that was replayed.

    Attributes:
        name: of the run.
        simulated: whether the simulated LM answered.
        questions: in the order of the run.
    """

    name: str
    simulated: bool
    questions: tuple[ReplayedQuestion, ...]

    @property
    def differing(self) -> list[ReplayedQuestion]:
        """Return the questions that differ."""
        return [one for one in self.questions if one.differences]


@dataclass(frozen=True)
class Replay:
    """All runs of a capsule."""

    runs: tuple[ReplayedRun, ...]

    @property
    def same(self) -> bool:
        """Return whether no question differs."""
        return not any(run.differing for run in self.runs)


def replay(
    path: Path,
    on_question: Callable[[str, int, int], None] | None = None,
    texts: Callable[[], Texts] | None = None,
    allow_code: Iterable[str] = (),
) -> Replay:
    """Ask every question of a capsule again, by the present code and with the stored outcomes.

    Args:
        path: of the capsule.
        on_question: called with the run's name, the questions done, and their number.
        texts: gives the task and its corpus, for a capsule that was packed without texts.
        allow_code: programs of other packages that the capsule may name, as ``package:name``.

    Raises:
        RunFileError: if the capsule is damaged, or breaks a rule.
        QuestreeError: if a program in it, or a setting, is not known here.
    """
    for name in allow_code:
        REGISTRY.allow(name)
    return Replay(tuple(_replayed(run, on_question) for run in read_runs(path, texts)))


def _replayed(run: PackedRun, on_question: Callable[[str, int, int], None] | None) -> ReplayedRun:
    questions: list[ReplayedQuestion] = []
    with _environment(run):
        program = program_of(run, **_stand_ins(run))
        for record in run.records:
            questions.append(_asked_again(program, record, run))
            if on_question is not None:
                on_question(run.name, len(questions), len(run.records))
    return ReplayedRun(run.name, bool(run.part("lm").get("simulated")), tuple(questions))


@contextmanager
def _environment(run: PackedRun) -> Iterator[None]:
    """Put the LM and the adapter of a run in force."""
    lm = unasked_lm(str(run.part("lm").get("name")), run.environment)
    with dspy.context(lm=lm, adapter=adapter_of(run), trace=[]):
        yield


def _limits_of(run: PackedRun, id: str) -> Limits:
    """Return the limits that a question was asked under: a run may go on under others than it began with."""
    asked = run.limits.get(id) or Limits()
    return Limits(retries=asked.retries, window=asked.window or run.environment.window)


def adapter_of(run: PackedRun) -> dspy.Adapter | None:
    """Return the adapter that wrote the prompts of a run; None for the one that is taken if none is configured.

    Raises:
        QuestreeError: if it is not known here.
    """
    adapter = run.environment.adapter
    if adapter not in _ADAPTERS:
        raise QuestreeError(f"{run.name}: the adapter {adapter!r} is not known here.")
    return adapter_named(_ADAPTERS[adapter])


def program_of(run: PackedRun, **parts: Any) -> Program:
    """Return the program of a run, by the present code; a compiled one with the prompts that it had.

    Args:
        run: of the capsule.
        parts: ``retriever``, ``reader``, ``duplicates``.

    Raises:
        QuestreeError: if those do not fit the present code.
    """
    state = run.environment.state
    if state is None:
        return _coded(run, parts)
    try:
        return state.program(lambda: _coded(run, parts))
    except ValueError as problem:
        name = run.name
        raise QuestreeError(f"{name}: its compiled program does not fit this version: {problem}.") from problem


def _coded(run: PackedRun, parts: dict[str, Any]) -> Program:
    name = run.environment.program or str(run.identity.get("program"))
    program = build(name, run.part("settings"), **parts)
    reader = run.part("reader")
    if reader and parts["reader"] is None:
        program.reader.threshold = reader["threshold"]
    return program


def _stand_ins(run: PackedRun) -> dict[str, Any]:
    """Return what stands in the place of the retriever, the reader and the check of duplicates."""
    retriever, reader = run.part("retriever"), run.part("reader")
    trained = reader and reader["name"] != LMReader.name
    return {
        "retriever": StoredRetriever(retriever, run.environment.compares) if retriever else None,
        "reader": StoredReader(reader) if trained else None,
        "duplicates": StoredDuplicates() if run.environment.duplicates else None,
    }


def _asked_again(program: Program, stored: Record, run: PackedRun) -> ReplayedQuestion:
    if stored.failure is not None and stored.failure.cause == "deadline":
        return ReplayedQuestion(stored, None, skipped="its time was over, which no replay repeats")
    exchanges, (digests, of_record) = run.asked[stored.id], run.digests.get(stored.id, ({}, ""))
    source, example = _Stored(exchanges, digests), example_of(stored)
    try:
        with limited(_limits_of(run, stored.id)), replaying(source):
            now, _ = answer(program, example)
    except LeftError as error:
        return ReplayedQuestion(stored, None, (*source.differences(), error.difference))
    now = now.model_copy(update={"inputs": stored.inputs, "gold": stored.gold})
    now = score(now, example, [metric(name) for name in stored.scores if name in METRICS])
    differences = (
        source.differences()
        or source.unasked()
        or (answer_differences(stored, now) if run.has_texts else record_differences(stored, now, of_record))
    )
    if not differences and any(now.scores[name] != stored.scores[name] for name in now.scores):
        text = f"{stored.scores} → {now.scores}"
        differences = [Difference(place=(), by="scores", number=0, why="answer changed", text=text)]
    return ReplayedQuestion(stored, now, tuple(differences))


def example_of(record: Record) -> dspy.Example:
    """Return the question as it was asked."""
    fields: dict[str, Any] = {
        name: getattr(record, name) for name in ("id", "question", "answer_style", "answers_are_regex", "kind", "hops")
    }
    lists = {
        name: list(getattr(record, name)) for name in ("answers", "gold_titles", "gold_passages", "gold_sentences")
    }
    return dspy.Example(**fields, **lists).with_inputs("question", "answer_style")


class _Stored:
    """The exchanges of one question, and where the present code leaves them."""

    def __init__(self, exchanges: list[Exchange], digests: dict[int, str]):
        self.digests, self.ordered = digests, exchanges
        self.numbered = {one.place: (number, one) for number, one in enumerate(exchanges, start=1)}
        self._differences: list[Difference] = []
        self._taken: set[tuple[int, ...]] = set()

    def take(self, begun: Exchange) -> Exchange:
        """Return the stored exchange; a changed prompt gets its stored reply, so that what follows can be compared.

        Raises:
            LeftError: if something else was asked there.
        """
        number, stored = self.numbered.get(begun.place, (0, None))
        if stored is None or (stored.kind, stored.by) != (begun.kind, begun.by):
            before = [one for one in self.ordered if one.place < begun.place]
            raise LeftError(left(begun, stored, before[-1] if before else None, number or len(before) + 1))
        self._taken.add(stored.place)
        if self.digests.get(number, stored.digest) != begun.digest:
            self._differences.append(changed(stored, begun, number))
        return stored

    def differences(self) -> list[Difference]:
        """Return what was asked otherwise, in the order of the program."""
        return sorted(self._differences, key=lambda one: one.place)

    def unasked(self) -> list[Difference]:
        """Return what was not asked any more."""
        return [unasked(one, number) for number, one in self.numbered.values() if one.place not in self._taken]
