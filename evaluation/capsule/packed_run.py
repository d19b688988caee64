"""A run as a replay takes it from its file: what was asked, the answers, and all that was said from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from ...common.json_files import validate
from ...lm.exchanges import Exchange
from ...lm.policy import Limits
from ..environment import Environment
from ..records import Record
from ..run_file import RunFile, RunFileError, find, reading
from ..stored_runs import StoredRun, runs_in, steps_of
from .texts import Texts, passages_of, restore_passages, restored


class _Nothing(BaseModel):
    """What stands for a part that the run did not have."""

    model_config = ConfigDict(extra="forbid")


class _Retriever(BaseModel):
    name: str
    fingerprint: str


class _Reader(BaseModel):
    name: str
    threshold: float


class _Identity(BaseModel):
    """What a run is about, as far as a replay reads it."""

    lm: dict[str, JsonValue] = {}
    settings: dict[str, JsonValue] | None = None
    retriever: _Retriever | _Nothing | None = None
    reader: _Reader | _Nothing | None = None


@dataclass(frozen=True)
class PackedRun:
    """A run that can be replayed.

    Attributes:
        name: of the run.
        identity: program, settings, LM, retriever (`run_identity`).
        environment: what else must be the same.
        metrics, seed: of the last evaluation.
        records: of its questions.
        asked: the steps of each question.
        limits: by question, those that it was asked under.
        digests: by question, those of requests that are not there themselves, by the number of their step from 1; and
            of the record. Empty where questions, prompts and passages are in the file.
    """

    name: str
    identity: dict[str, Any]
    environment: Environment
    metrics: tuple[str, ...]
    seed: int
    records: tuple[Record, ...]
    asked: Mapping[str, list[Exchange]]
    limits: Mapping[str, Limits]
    digests: Mapping[str, tuple[dict[int, str], str]]

    @property
    def has_texts(self) -> bool:
        """Return whether questions, prompts and passages are in the file."""
        return not self.digests

    def part(self, name: str) -> dict[str, Any]:
        """Return a part of what the run is about; empty if there is none."""
        return validate(dict[str, Any], self.identity.get(name) or {})


def read_runs(place: Path, texts: Callable[[], Texts] | None = None) -> Iterator[PackedRun]:
    """Yield the runs of a file, each as it is read.

    Args:
        place: of the file, or of one run in it (`find`).
        texts: gives the task and its corpus, for runs that were packed without texts.

    Raises:
        RunFileError: if the file, or a run in it, is damaged or cannot be replayed; names it.
        QuestreeError: if it has no texts, and none or others are given.
    """
    for path, name in find(place):
        yield from _read_file(path, name, texts)


def _read_file(path: Path, name: str, texts: Callable[[], Texts] | None) -> Iterator[PackedRun]:
    with reading(path) as file:
        runs = list(runs_in(file, name, bare=True))
        bare = bool(file.fact("without texts"))
        packed = (_packed_run(file, run, bare=bare) for run in runs)
        yield from _with_texts(list(packed), texts) if bare else packed


def _packed_run(file: RunFile, run: StoredRun, *, bare: bool) -> PackedRun:
    bounds = "SELECT id, limits FROM questions WHERE run = ? AND limits IS NOT NULL"
    [[environment]] = file.rows("SELECT environment FROM run WHERE number = ?", run.number)
    try:
        validate(_Identity, run.identity)
        around = Environment.model_validate(file.value(environment))
        limits = {id: Limits.model_validate(file.value(kept)) for id, kept in file.rows(bounds, run.number)}
    except (ValidationError, ValueError) as error:
        raise RunFileError(f"The run {run.name} of {file.path} cannot be replayed: {error}.") from error
    asked = {record.id: steps_of(file, run.number, record.id) for record in run.records}
    return PackedRun(
        run.name,
        run.identity,
        around,
        run.metrics,
        run.seed,
        run.records,
        asked,
        limits,
        {record.id: _digests(file, run, record.id) for record in run.records} if bare else {},
    )


def _digests(file: RunFile, run: StoredRun, id: str) -> tuple[dict[int, str], str]:
    of_steps = file.rows("SELECT number, digest FROM steps WHERE run = ? AND id = ?", run.number, id)
    [[record]] = file.rows("SELECT digest FROM questions WHERE run = ? AND id = ?", run.number, id)
    return dict(of_steps), record


def _with_texts(runs: Sequence[PackedRun], texts: Callable[[], Texts] | None) -> Iterator[PackedRun]:
    """Yield runs with what their task has; its corpus is read once for all of them."""
    if texts is None:
        name = runs[0].name
        raise RunFileError(f"{name} was packed without texts: it can be replayed, by whoever has its task.")
    found = texts()
    records = [restored(run.records, found, str(run.identity.get("task"))) for run in runs]
    passages = passages_of([run.asked for run in runs], found.corpus)
    for run, questions in zip(runs, records, strict=True):
        yield replace(run, records=questions, asked=restore_passages(run.asked, passages))
