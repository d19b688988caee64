"""A run that is being written: each answer, its steps and its scores go into a file of runs as they come."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..common.errors import QuestreeError
from ..common.secrets import without_secrets
from ..lm.episode import EpisodeStep
from ..lm.limits import Limits, RunPolicy
from ..programs import Program
from .environment import environment_of
from .identity import run_identity
from .records import Record, plain
from .run_file import WritableFile
from .stored_runs import place_of, records_of

DETAILS = {"tree", "gold_sentences", "dropped"}
"""Fields of a record that lists and sums do not need."""

_PROMPTS = "compiled state"  # a digest, which means nothing to a reader


class KeptRun:
    """A run in a file that this process writes, from any thread. Get one from `begin` or `match_run`."""

    def __init__(self, file: WritableFile, name: str, number: int):
        self.file, self.name, self.number = file, name, number

    @property
    def place(self) -> Path:
        """Return the path that a user types to see it."""
        return place_of(self.file, self.name)

    @cached_property
    def earlier(self) -> dict[str, Record]:
        """Return the records that an earlier attempt left, by question id, the latest of each."""
        return records_of(self.file, self.number)

    def append(self, record: Record, steps: Sequence[EpisodeStep] | None = None, limits: Limits | None = None) -> None:
        """Keep an answer with the scores that it has, and its steps; it is on the disk when this returns.

        Without steps, it is the answer that is there already, with another gold side.
        """
        content, key, spent = record.model_dump(mode="json", exclude={"scores"}), (self.number, record.id), record.spent
        heavy = {name: content.pop(name) for name in DETAILS}
        (light, texts), (details, more) = self.file.kept(content), self.file.kept(heavy)
        row: dict[str, Any] = {
            **{"run": self.number, "id": record.id, "record": light, "details": details},
            **{"question": record.question, "gold": record.gold_answer or None, "answer": record.answer},
            **{"failure": record.failure and record.failure.cause, "hops": record.hops, "seconds": record.seconds},
            **{"calls": spent.calls, "tokens_in": spent.tokens_in, "tokens_out": spent.tokens_out, "cost": spent.cost},
        }
        taken: list[tuple[str, Sequence[Any]]] = []
        if steps is not None:
            row["limits"] = None if limits is None else limits.model_dump_json(exclude_none=True)
            taken += self._steps(record.id, steps)
        insert, values = _insert("questions", row)
        kept = ", ".join(f"{name} = excluded.{name}" for name in row)
        answered = f"{insert} ON CONFLICT (run, id) DO UPDATE SET {kept}", values
        former = "DELETE FROM scores WHERE run = ? AND id = ?", key
        self.file.write(*texts, *more, former, *taken, answered, *self._scores(record))

    def append_scores(self, record: Record) -> None:
        """Keep the scores of an answer that was appended before."""
        self.file.write(*self._scores(record))

    def end(self, metrics: Sequence[str], seed: int, questions: Sequence[str]) -> None:
        """Keep the metrics of an evaluation, the run's score first, its seed, and its questions in order."""
        place = "UPDATE questions SET place = ? WHERE run = ? AND id = ?"
        self.file.write(
            ("UPDATE run SET metrics = ?, seed = ? WHERE number = ?", (json.dumps(list(metrics)), seed, self.number)),
            ("UPDATE questions SET place = NULL WHERE run = ?", (self.number,)),
            *((place, (number, self.number, id)) for number, id in enumerate(questions, start=1)),
        )

    def _scores(self, record: Record) -> Iterator[tuple[str, Sequence[Any]]]:
        changed = "ON CONFLICT (run, id, metric) DO UPDATE SET score = excluded.score"
        for score in record.scores.items():
            yield f"INSERT INTO scores VALUES (?, ?, ?, ?) {changed}", (self.number, record.id, *score)

    def _steps(self, id: str, steps: Sequence[EpisodeStep]) -> Iterator[tuple[str, Sequence[Any]]]:
        yield "DELETE FROM steps WHERE run = ? AND id = ?", (self.number, id)
        for number, one in enumerate(sorted(steps, key=lambda step: step.place), start=1):
            told = plain(without_secrets(one.model_dump(mode="json", exclude_defaults=True)))
            request, texts = self.file.kept(told["request"])
            outcome, more = self.file.kept(told.get("outcome"))
            yield from (*texts, *more)
            row = {
                **{"run": self.number, "id": id, "number": number, "place": json.dumps(one.place)},
                **{"kind": one.kind, "name": one.name, "request": request, "outcome": outcome},
                **{part: json.dumps(told[part]) if part in told else None for part in ("fault", "spent", "dropped")},
                **{"tokens_in": one.spent.tokens_in, "tokens_out": one.spent.tokens_out, "seconds": one.seconds},
            }
            yield _insert("steps", row)


def _insert(table: str, row: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())


def begin(file: WritableFile, name: str, program: Program, task: str = "", policy: RunPolicy | None = None) -> KeptRun:
    """Begin the run of a program in a file, or resume the one of that name: of the same program, LM and retriever.

    The policy is stored as the one that holds from now on.
    """
    how = {"policy": (policy or RunPolicy()).model_dump_json()}
    environment = environment_of(program).model_dump_json()
    return match_run(file, name, run_identity(program, task=task), **how, environment=environment)


def match_run(file: WritableFile, name: str, about: Mapping[str, Any], **beside: str) -> KeptRun:
    """Return the run of a name if it is about the same; begin it if it is not there."""
    about = json.loads(json.dumps(about))
    found = file.rows("SELECT number, about, environment FROM run WHERE name = ?", name)
    for _, there, environment in found:
        writer = (file.value(environment) or {}).get("versions", {}).get("questree")
        check_same(str(place_of(file, name)), file.value(there), about, writer)
    if not found:
        lm, retriever = about.get("lm") or {}, about.get("retriever") or {}
        row = {
            **{"name": name, "about": json.dumps(about, ensure_ascii=False)},
            **{"program": about.get("program"), "task": about.get("task")},
            **{"lm": lm.get("name"), "simulated": lm.get("simulated"), "retriever": retriever.get("name")},
        }
        file.write(_insert("run", row))
        found = file.rows("SELECT number FROM run WHERE name = ?", name)
    number = int(found[0][0])
    file.write(*((f"UPDATE run SET {column} = ? WHERE number = ?", (one, number)) for column, one in beside.items()))
    return KeptRun(file, name, number)


def check_same(what: str, there: Mapping[str, Any], now: Mapping[str, Any], writer: str | None = None) -> None:
    """Refuse to resume something that is about something else.

    Args:
        what: the thing to be resumed, for the message.
        there, now: what it was about, and what it would be about now, as JSON.
        writer: the version of questree that began it.

    Raises:
        QuestreeError: names what differs.
    """
    differing = {key for key in {*there, *now} if there.get(key) != now.get(key)}
    same = {_PROMPTS} | ({"settings"} if "program" in differing else set())  # another program has other prompts anyway
    told = [one for key in sorted(differing - same) for one in _differences(key, there.get(key), now.get(key))]
    way = "Go on with what it was, or name another folder."
    if _PROMPTS in differing and "program" not in differing:
        by = f" (questree {writer} wrote it)" if writer else ""
        told = [f"the prompts or demonstrations of {now.get('program')} have changed since{by}", *told]
        way = "Answers to other prompts are not mixed: name another folder."
    if told:
        raise QuestreeError(f"{what} holds another run: {'; '.join(told)}. {way}")


def _differences(name: str, there: Any, now: Any) -> Iterator[str]:
    """Yield the differences in a value, each with its name (``settings.k``) and both values."""
    if not (isinstance(there, Mapping) and isinstance(now, Mapping)):
        yield f"{name} was {there!r} and is now {now!r}"
        return
    for key in sorted({*there, *now}):
        if there.get(key) != now.get(key):
            yield from _differences(f"{name}.{key}", there.get(key), now.get(key))
