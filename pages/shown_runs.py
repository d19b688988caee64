"""Runs as pages look at them: a line of each answer, and a whole record only when its page is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..common.errors import QuestreeError
from ..common.manifests import json_hash
from ..evaluation.comparison.labels import told_apart
from ..evaluation.comparison.page import shown
from ..evaluation.comparison.rows import Comparison
from ..evaluation.evaluation import Evaluation
from ..evaluation.records import Record
from ..evaluation.run_file import RunFile, find, reading
from ..evaluation.stored_runs import StoredRun, records_of, runs_in, steps_of
from ..lm.episode import EpisodeStep


class AnswerLine(NamedTuple):
    """What lists say of an answer.

    Attributes:
        id: of the question.
        gold: the first gold answer; empty if there is none.
        verdict: what the answer is worth, in a word.
        style: the class that this word is drawn with.
        cites_falsely: whether a mark stands at words that its passage does not support.
    """

    id: str
    question: str
    gold: str
    answer: str
    verdict: str
    style: str
    hops: int | None
    failed: bool
    cites_falsely: bool


class ShownRun(NamedTuple):
    """A run in its file.

    Attributes:
        rows: of its answers, by the names of their questions: the id; with a digest, if an earlier run has another
            question of that id.
    """

    file: RunFile
    number: int
    name: str
    simulated: bool
    lm: str
    retriever: str
    identity: Mapping[str, Any]
    rows: Mapping[str, AnswerLine]
    self_written: bool


class ShownRuns:
    """The runs of several files, which stay open. Where several have one name, it tells the folder too.

    Args:
        sources: files, the folders that they are in, or single runs of them (`find`).
        names: of the sources, where each is one run that is to have another name than its own.

    Attributes:
        runs: by name.
        compared: each group of runs with the same questions and the same metric, as it is drawn (`shown`).
        left_out: why runs are left out.

    Raises:
        QuestreeError: one of the sources cannot be read, or holds no run that can.
    """

    def __init__(self, sources: Sequence[Path], names: Sequence[str] = ()):
        self._open, self.left_out = ExitStack(), list[str]()
        found = list[tuple[RunFile, StoredRun]]()
        for number, source in enumerate(sources):
            before, told = len(found), len(self.left_out)
            for path, wanted in find(source):
                file = self._open.enter_context(reading(path))
                for run in self._readable(file, wanted):
                    found.append((file, replace(run, name=names[number]) if names else run))
            if len(found) == before:
                raise QuestreeError(" ".join(self.left_out[told:]) or f"{source} holds no run yet.")
        apart = told_apart((run.name, run.part_of) for _, run in found)
        stored = {name: (file, replace(run, name=name)) for name, (file, run) in zip(apart, found, strict=True)}
        name_of = _names([run for _, run in stored.values()])
        self.runs = {
            name: ShownRun(
                file,
                run.number,
                name,
                run.simulated,
                *_parts(run),
                run.identity,
                _rows(run, name_of),
                any(record.self_written for record in run.records),
            )
            for name, (file, run) in stored.items()
        }
        self.compared = _compared([run for _, run in stored.values()], name_of)

    def record(self, run: str, question: str) -> Record:
        """Return the whole record of an answer."""
        shown = self.runs[run]
        id = shown.rows[question].id
        return records_of(shown.file, shown.number, id=id)[id]

    def asked(self, run: str, question: str) -> list[EpisodeStep]:
        """Return what was asked for an answer outside the program; empty where that was not kept."""
        shown = self.runs[run]
        return steps_of(shown.file, shown.number, shown.rows[question].id)

    def _readable(self, file: RunFile, wanted: str) -> list[StoredRun]:
        """Return the runs of a file that can be read; a folder of several may hold one without runs, of a server."""
        names = [name for (name,) in file.rows("SELECT name FROM run ORDER BY place IS NULL, place, number")]
        found, told = list[StoredRun](), list[str]()
        for name in [wanted] if wanted else names:
            try:
                found += runs_in(file, name, whole=False)
            except QuestreeError as error:
                told.append(str(error))
        self.left_out += told
        return found


_NameOf = Callable[[Record], str]


def _names(runs: Sequence[StoredRun]) -> _NameOf:
    """Return what names a record's question: its id; with a digest, if an earlier run has it in other words or gold."""
    first: dict[str, Any] = {}
    for record in (record for run in runs for record in run.records):
        first.setdefault(record.id, (record.question, record.gold_answers))

    def name(record: Record) -> str:
        asked = record.question, record.gold_answers
        return record.id if asked == first[record.id] else f"{record.id}-{json_hash(asked)[:8]}"

    return name


def _rows(run: StoredRun, name_of: _NameOf) -> dict[str, AnswerLine]:
    evaluation = _evaluation(run)
    rows = {}
    for record in run.records:
        gold, failed = record.gold_answer, record.failure is not None
        worth = _verdict(record, evaluation.metric if evaluation else "")
        falsely = record.retrieval.get("citation_precision", 1.0) < 1
        row = AnswerLine(record.id, record.question, gold, record.answer, *worth, record.hops, failed, falsely)
        rows[name_of(record)] = row
    return rows


def _evaluation(run: StoredRun) -> Evaluation | None:
    """Return the evaluation of a run; None if nothing is scored yet."""
    try:
        return run.evaluation
    except QuestreeError:
        return None


def _verdict(record: Record, metric: str) -> tuple[str, str]:
    """Return what an answer is worth in a word, and the class that the word is drawn with."""
    if record.failure is not None:
        return f"failed: {record.failure.cause}", "warn"
    score = record.scores.get(metric)
    if score is None:
        return "not scored", "quiet"
    if score >= 1:  # as in `questree analyse misled`
        return "right", "good"
    return ("wrong", "bad") if score == 0 else (f"{score:.2f}", "warn")


def _compared(runs: Sequence[StoredRun], name_of: _NameOf) -> list[dict[str, Any]]:
    """Return a comparison of each group of runs with the same scored questions and the same metric."""
    groups: dict[Any, list[tuple[StoredRun, Evaluation]]] = {}
    for run in runs:
        if (one := _evaluation(run)) is not None:
            groups.setdefault((one.metric, frozenset(map(name_of, one.records))), []).append((run, one))
    return [shown(_comparison(group)) for group in groups.values()]


def _comparison(group: Sequence[tuple[StoredRun, Evaluation]]) -> Comparison:
    runs = [run for run, _ in group]
    order = {record.id: place for place, record in enumerate(group[0][1].records)}
    in_order = {
        run.name: replace(one, records=tuple(sorted(one.records, key=lambda record: order[record.id])))
        for run, one in group
    }
    return Comparison(
        in_order,
        task=_joined(str(run.identity.get("task") or "") for run in runs),
        lm=_joined(_parts(run)[0] for run in runs),
        retriever=_joined(_parts(run)[1] for run in runs),
    )


def _joined(names: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name))


def _parts(run: StoredRun) -> tuple[str, str]:
    """Return the names of a run's LM and of its retriever, empty where it has none."""
    return str(run.part("lm").get("name", "")), str(run.part("retriever").get("name", ""))
