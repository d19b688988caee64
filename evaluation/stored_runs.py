"""Read runs from their files: their records, what they are about, and the steps of each question."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..common.errors import QuestreeError
from ..common.json_files import validate
from ..lm.episode import EpisodeStep
from ..lm.limits import Limits
from ..lm.spent import Spent
from .environment import Environment
from .evaluation import Evaluation
from .record_scores import scored_alone
from .records import Record
from .run_file import NAME, RunFile, RunFileError, find, reading

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredRun:
    """The run of a program over questions, as it was stored.

    Attributes:
        name: unique among the runs that were read together.
        records: the latest of each question of the last evaluation, in its order; while none has ended, of all
            questions, in the order in which they were first asked.
        identity: what the run is about: program, settings, LM, retriever (`run_identity`).
        paid: what all calls took that were made for it; None if that is not known.
        metrics, seed: of the last evaluation; no metrics if that is not known.
        others: the records of questions that the last evaluation did not have.
        file: the file that it was read from; steps and limits can be read while it is open.
        around: what else must be the same for a replay (`Environment`), as JSON.
    """

    name: str
    records: tuple[Record, ...]
    identity: dict[str, Any]
    place: Path
    number: int
    paid: Spent | None
    metrics: tuple[str, ...]
    seed: int
    others: tuple[Record, ...]
    file: RunFile
    around: Any

    @property
    def simulated(self) -> bool:
        """Return whether the simulated LM answered."""
        return bool(self.part("lm").get("simulated"))

    @property
    def part_of(self) -> str:
        """Return the name of the folder, or capsule, that it shares with others; empty if it is alone there."""
        path = self.file.path
        folder = path.resolve().parent.name if path.name == NAME else path.stem
        return "" if folder == self.name else folder

    @property
    def environment(self) -> Environment:
        """Return the surroundings of the run, which must be the same for a replay."""
        with _explaining_damage(f"The run {self.name} of {self.place} cannot be replayed"):
            return Environment.model_validate(self.around)

    def part(self, name: str) -> dict[str, Any]:
        """Return a part of what the run is about; empty if there is none."""
        found = self.identity.get(name)
        return found if isinstance(found, dict) else {}

    def steps(self, id: str) -> list[EpisodeStep]:
        """Return the steps of a question (`steps_of`)."""
        return steps_of(self.file, self.number, id)

    def limits(self, id: str) -> Limits | None:
        """Return the limits that a question was asked under; None if they were not kept."""
        query = "SELECT limits FROM questions WHERE run = ? AND id = ? AND limits IS NOT NULL"
        with _explaining_damage(f"The limits of question {id!r} are damaged"):
            kept = self.file.rows(query, self.number, id)
            return Limits.model_validate(self.file.value(kept[0][0])) if kept else None

    @property
    def metric(self) -> str:
        """Return the metric that the run was scored by first."""
        scored = (name for record in self.records for name in record.scores)
        metric: str | None = next(iter(self.metrics or scored), None)
        if metric is None or not any(metric in record.scores for record in self.records):
            raise QuestreeError(f"No answer of the run {self.name} is scored yet; run the same evaluation again.")
        return metric

    @property
    def evaluation(self) -> Evaluation:
        """Return the evaluation of the scored answers; in a run that goes on, or was killed, some have no score yet."""
        metric = self.metric
        scored = tuple(record for record in self.records if metric in record.scores)
        shown = scored_alone(scored, self.metrics) if self.metrics else scored
        return Evaluation(metric, shown, self.simulated, self.seed, paid_for_all=self.paid)

    def as_json(self) -> str:
        """Return every figure of the evaluation, after the program, the task and the LM."""
        facts = {name: self.identity.get(name) for name in ("program", "task")}
        return self.evaluation.as_json(**facts, lm=self.part("lm").get("name"))


def open_runs(place: Path) -> Iterator[StoredRun]:
    """Yield the runs of a place, each while its file is open (`runs_in`)."""
    for path, name in find(place):
        with reading(path) as file:
            yield from runs_in(file, name)


def stored_runs(places: Sequence[Path]) -> list[StoredRun]:
    """Return the runs in these places: files, the folders that they are in, or single runs of them (`find`)."""
    runs: dict[str, StoredRun] = {}
    for run in (run for place in places for run in open_runs(place)):
        unique = run.name if run.name not in runs else str(run.place)
        runs[unique] = replace(run, name=unique)
    return list(runs.values())


def lines_of(place: Path) -> Iterator[dict[str, Any]]:
    """Yield each question of a place: the run's name, the record's fields and the steps, as JSON."""
    for run in open_runs(place):
        for record in run.records:
            steps = [step.model_dump(mode="json", exclude_none=True) for step in run.steps(record.id)]
            yield {"run": run.name, **record.model_dump(mode="json"), "steps": steps}


def read_records(place: str | Path) -> list[Record]:
    """Return the records of a run with their scores, in the order in which questions were first asked.

    Of a question that was asked several times, the latest record is taken.

    Raises:
        QuestreeError: if there is no run, or several; if a record is damaged: names it.
    """
    found = find(Path(place))
    inside = [file.parent.name for file, _ in found]
    if len(found) == 1:
        [(path, name)] = found
        with reading(path) as file:
            runs = _rows(file, name)
            if len(runs) == 1:
                return list(records_of(file, runs[0][0]).values())
        inside = [name for _, name, *_ in runs]
    raise QuestreeError(f"{place} holds the runs {', '.join(inside)}; give one of them.")


def runs_in(file: RunFile, name: str = "", *, whole: bool = True) -> Iterator[StoredRun]:
    """Yield the runs of a file; the one that the others are compared with comes first.

    Args:
        name: of the only run that is wanted; empty for all.
        whole: whether records are read with their trees, references and details.
    """
    begun = {number for (number,) in file.rows("SELECT DISTINCT run FROM questions")}
    rows = [row for row in _rows(file, name) if row[0] in begun]
    if not rows:
        raise QuestreeError(f"{file.path} has no finished question{f' of {name}' if name else ''} yet.")
    for number, called, seed, *told in rows:
        place = place_of(file, called)
        with _explaining_damage(f"{file.path}: what is told of the run {called} is damaged"):
            identity, measured, around = file.values(told)
            about, metrics = validate(dict[str, Any], identity), validate(list[str], measured or [])
        kept = records_of(file, number, whole=whole)
        last = file.rows("SELECT id FROM questions WHERE run = ? AND place > 0 ORDER BY place", number)
        ids = [id for (id,) in last if id in kept] or list(kept)
        if more := len(kept) - len(ids):
            said = "%s holds answers to %d more questions than its last evaluation had; that evaluation is shown."
            logger.warning(said, place, more)
        yield StoredRun(
            name=called if place != file.path.parent else place.resolve().name,
            records=tuple(_with_first(metrics, kept.pop(id)) for id in ids),
            identity=about,
            place=place,
            number=number,
            paid=file.paid().get(number),
            metrics=tuple(metrics),
            seed=int(seed or 0),
            others=tuple(kept.values()),
            file=file,
            around=around,
        )


def place_of(file: RunFile, name: str) -> Path:
    """Return the path that a user types to see a run: its folder, followed by its name if it is not alone there."""
    folder = file.path.parent if file.path.name == NAME else file.path
    return folder if file.fact("kind") == "evaluation" else folder / name


def _rows(file: RunFile, name: str) -> list[tuple[Any, ...]]:
    columns, order = "number, name, seed, about, metrics, environment", "ORDER BY place IS NULL, place, number"
    return file.rows(f"SELECT {columns} FROM run WHERE ? IN ('', name) {order}", name)


def records_of(file: RunFile, run: int, *, whole: bool = True, id: str | None = None) -> dict[str, Record]:
    """Return the records of a run with their scores, by question id, in the order in which they were first asked.

    Args:
        whole: whether with trees, references and details.
        id: of the only question that is wanted.
    """
    where, given = ("run = ?", [run]) if id is None else ("run = ? AND id = ?", [run, id])
    scores: dict[str, dict[str, float]] = {}
    for one, metric, value in file.rows(f"SELECT id, metric, score FROM scores WHERE {where} ORDER BY rowid", *given):
        scores.setdefault(one, {})[metric] = value
    rows = file.rows(
        f"SELECT id, record, {'details' if whole else 'NULL'} FROM questions WHERE {where} ORDER BY rowid", *given
    )
    contents = iter(file.values([column for row in rows for column in row[1:]]))
    found = {}
    for (one, *_), record, details in zip(rows, contents, contents, strict=True):
        with _explaining_damage(f"{file.path}: the record of question {one!r} is damaged"):
            found[one] = Record.model_validate({**record, **(details or {}), "scores": scores.get(one, {})})
            if found[one].id != one:
                raise ValueError("it is another's")
    return found


def steps_of(file: RunFile, run: int, id: str) -> list[EpisodeStep]:
    """Return the steps of a question's last attempt, in the order of the program."""
    as_json = ("place", "request", "outcome", "fault", "spent", "dropped")
    query = f"SELECT kind, name, seconds, {', '.join(as_json)} FROM steps WHERE run = ? AND id = ? ORDER BY number"
    steps = []
    with _explaining_damage(f"{file.path}: the steps of question {id!r} are damaged"):
        for kind, name, seconds, *columns in file.rows(query, run, id):
            pairs = zip(as_json, file.values(columns), strict=True)
            told = {field: value for field, value in pairs if value is not None}
            steps.append(EpisodeStep.model_validate({"kind": kind, "name": name, "seconds": seconds, **told}))
    return steps


def _with_first(metrics: Sequence[str], record: Record) -> Record:
    """Return the record with the scores of these metrics first: a replay takes the first as the run's metric."""
    first = {name: record.scores[name] for name in metrics if name in record.scores}
    return record.model_copy(update={"scores": first | record.scores})


@contextmanager
def _explaining_damage(what: str) -> Iterator[None]:
    """Turn an error of reading into one that says ``what``, with the first fault in it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        fault = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise RunFileError(f"{what} ({fault}).") from error
