"""A run that is being made: each answer, its steps and its scores, kept in a file of runs as they come."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..common.errors import QuestreeError
from ..common.secrets import without_secrets
from ..common.text import without_surrogates
from ..lm.exchanges import Exchange
from ..lm.policy import Limits, RunPolicy
from .environment import Environment
from .records import Record
from .run_file import WritableFile, writing
from .stored_runs import place_of, records_of

DETAILS = {"tree", "references", "extras", "gold_sentences", "dropped"}
"""Fields of a record that lists and sums do not look at."""

_PROMPTS = "compiled state"  # a digest, which tells nobody anything


class KeptRun:
    """A run in a file that this process writes. Get one from `kept_run` or `begin_run`.

    Attributes:
        file: with perhaps other runs.
        name, number: of the run in it.
        records: by question id, the latest of each.
    """

    def __init__(self, file: WritableFile, name: str, number: int, records: dict[str, Record]):
        self.file, self.name, self.number, self.records = file, name, number, records

    @property
    def place(self) -> Path:
        """Return what a user types to see it."""
        return place_of(self.file, self.name)

    def append(self, record: Record, exchanges: Sequence[Exchange] | None = None, limits: Limits | None = None) -> None:
        """Keep an answer, without scores, and what was asked for it; it is on the disk when this returns.

        Args:
            record: of the question.
            exchanges: what was asked for it, and under which limits; None if it is the answer that is there, with
                another gold side.
            limits: see there.

        Raises:
            QuestreeError: if it cannot be written.
        """
        content = record.model_dump(mode="json", exclude={"scores"})
        details = {name: content.pop(name) for name in DETAILS}
        (light, texts), (heavy, more) = self.file.kept(content), self.file.kept(details)
        key, spent = (self.number, record.id), record.spent
        row: dict[str, Any] = {
            **dict(zip(("run", "id"), key, strict=True)),
            "record": light,
            "details": heavy,
            "question": record.question,
            "gold": next(iter(record.answers), None),
            "answer": record.answer,
            "failure": record.failure and record.failure.cause,
            "hops": record.hops,
            **{"calls": spent.calls, "tokens_in": spent.tokens_in, "tokens_out": spent.tokens_out, "cost": spent.cost},
            "seconds": record.seconds,
        }
        steps: list[tuple[str, Sequence[Any]]] = []
        if exchanges is not None:
            row["limits"] = None if limits is None else limits.model_dump_json(exclude_none=True)
            steps += self._steps(record.id, exchanges)
        kept = ", ".join(f"{name} = excluded.{name}" for name in row)
        insert = (
            f"INSERT INTO questions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))}) "
            f"ON CONFLICT (run, id) DO UPDATE SET {kept}"
        )
        unscored = "DELETE FROM scores WHERE run = ? AND id = ?"
        self.file.write(*texts, *more, (unscored, key), *steps, (insert, tuple(row.values())))
        self.records[record.id] = record

    def append_scores(self, record: Record) -> None:
        """Keep the scores of an answer that was appended before.

        Raises:
            QuestreeError: if they cannot be written.
        """
        insert = "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)"
        self.file.write(*((insert, (self.number, record.id, *score)) for score in record.scores.items()))
        self.records[record.id] = record

    def keep_digests(self, id: str, steps: Sequence[str], record: str) -> None:
        """Keep the digests of a question whose texts are not kept: of its steps in their order, and of its record."""
        key = (self.number, id)
        digests = "UPDATE steps SET request = NULL, digest = ? WHERE run = ? AND id = ? AND number = ?"
        self.file.write(
            ("UPDATE questions SET digest = ? WHERE run = ? AND id = ?", (record, *key)),
            *((digests, (digest, *key, number)) for number, digest in enumerate(steps, start=1)),
        )

    def end(self, metrics: Sequence[str], seed: int, questions: Sequence[str]) -> None:
        """Keep what an evaluation was over: its metrics, the run's score first, and its questions in order.

        Raises:
            QuestreeError: if it cannot be written.
        """
        place = "UPDATE questions SET place = ? WHERE run = ? AND id = ?"
        self.file.write(
            ("UPDATE run SET metrics = ?, seed = ? WHERE number = ?", (json.dumps(list(metrics)), seed, self.number)),
            ("UPDATE questions SET place = NULL WHERE run = ?", (self.number,)),
            *((place, (number, self.number, id)) for number, id in enumerate(questions, start=1)),
        )

    def _steps(self, id: str, exchanges: Sequence[Exchange]) -> Iterator[tuple[str, Sequence[Any]]]:
        yield "DELETE FROM steps WHERE run = ? AND id = ?", (self.number, id)
        insert = (
            "INSERT INTO steps (run, id, number, place, kind, name, request, outcome, fault, took, tokens_in, "
            "tokens_out) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        for number, one in enumerate(sorted(exchanges, key=lambda step: step.place), start=1):
            plain = _writable(one.model_dump(mode="json", exclude_defaults=True))
            request, texts = self.file.kept(plain["asked"])
            outcome, more = self.file.kept(plain.get("came"))
            yield from (*texts, *more)
            fault, took = (json.dumps(plain[name]) if name in plain else None for name in ("fault", "took"))
            replies = plain.get("came") if one.kind == "request" else []
            tokens = [sum(reply.get(name) or 0 for reply in replies or []) for name in ("tokens_in", "tokens_out")]
            values = (json.dumps(one.place), one.kind, one.by, request, outcome, fault, took, *tokens)
            yield insert, (self.number, id, number, *values)


def _writable(value: Any) -> Any:
    """Return a JSON value without keys, and without halves of characters."""
    plain = json.dumps(without_secrets(value), ensure_ascii=False)
    return json.loads(without_surrogates(plain))


@contextmanager
def kept_run(
    folder: Path, name: str, about: Mapping[str, Any], policy: RunPolicy, environment: Environment
) -> Iterator[KeptRun]:
    """Begin the run of an evaluation in a folder, or go on with the one that is there.

    Args:
        folder: made if need be.
        name: of the run.
        about, policy, environment: see `begin_run`.

    Raises:
        QuestreeError: as `writing` and `begin_run`.
    """
    with writing(folder, "evaluation") as file:
        named = file.rows("SELECT name FROM run")
        yield begin_run(file, named[0][0] if named else name, about, policy, environment)


def begin_run(
    file: WritableFile, name: str, about: Mapping[str, Any], policy: RunPolicy, environment: Environment
) -> KeptRun:
    """Begin a run in a file, or go on with the one of that name.

    Args:
        file: open for writing.
        name: of the run.
        about: what is asked, as JSON. A run goes on only with the same.
        policy: under which it is asked from now on.
        environment: what must be the same for it to be replayed.

    Raises:
        QuestreeError: if the run there is about something else (names what differs), or cannot be written.
    """
    number = create_or_match_run(file, name, about)
    around = policy.model_dump_json(), environment.model_dump_json()
    file.write(("UPDATE run SET policy = ?, environment = ? WHERE number = ?", (*around, number)))
    return KeptRun(file, name, number, records_of(file, number))


def create_or_match_run(file: WritableFile, name: str, about: Mapping[str, Any]) -> int:
    """Write down what a run is about; if that was done before, compare. Return its number.

    Raises:
        QuestreeError: if it is another run; names what differs.
    """
    number = check_run(file, name, about)
    if number is None:
        file.write(_inserted(name, json.loads(json.dumps(about))))
        return create_or_match_run(file, name, about)
    return number


def _inserted(name: str, about: Mapping[str, Any]) -> tuple[str, Sequence[Any]]:
    lm, retriever = about.get("lm") or {}, about.get("retriever") or {}
    row = {
        "name": name,
        "about": json.dumps(about, ensure_ascii=False),
        **{part: about.get(part) for part in ("program", "task")},
        "lm": lm.get("name"),
        "simulated": lm.get("simulated"),
        "retriever": retriever.get("name"),
    }
    return f"INSERT INTO run ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())


def check_run(file: WritableFile, name: str, about: Mapping[str, Any]) -> int | None:
    """Refuse to go on with the run of a name if it is about something else; return its number, None if it is not there.

    Raises:
        QuestreeError: names what differs.
    """
    found = file.rows("SELECT number, about, environment FROM run WHERE name = ?", name)
    if not found:
        return None
    number, there, environment = found[0]
    writer = (file.value(environment) or {}).get("versions", {}).get("questree")
    compare(str(place_of(file, name)), file.value(there), json.loads(json.dumps(about)), writer)
    return int(number)


def compare(what: str, there: Mapping[str, Any], now: Mapping[str, Any], writer: str | None = None) -> None:
    """Refuse to go on with something that is about something else.

    Args:
        what: is gone on with, for the message.
        there, now: what it was about and is about, as JSON.
        writer: the version of questree that began it.

    Raises:
        QuestreeError: names what differs.
    """
    differing = sorted(key for key in {*there, *now} if there.get(key) != now.get(key))
    told = [f"{key} was {there.get(key)!r} and is now {now.get(key)!r}" for key in differing if key != _PROMPTS]
    way = "Go on with what it was, or name another folder."
    if _PROMPTS in differing and "program" not in differing:  # the prompts of another program are others anyway
        by = f" (questree {writer} wrote it)" if writer else ""
        told = [f"the prompts or demonstrations of {now.get('program')} have changed since{by}", *told]
        way = "Answers to other prompts are not mixed: name another folder."
    if told:
        raise QuestreeError(f"{what} holds another run: {'; '.join(told)}. {way}")
