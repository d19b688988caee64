"""A run on disk.

``run.json`` says what is asked (the program, its parts, the task), ``records.jsonl`` has a line for each answer, and
``scores.jsonl`` a line for each time that an answer was scored. An answer is written before it is scored. Another
metric only adds scores; an answer whose gold side was corrected is written again, with that, and has no scores then.
``exchanges.jsonl`` has, for each time that a question was asked, what was asked for it outside the program and what
came back (`evaluation.capsule`); that is written before the answer. At the end, ``result.json`` has what the answers
add up to, which is never read here, and ``evaluated.json`` which of the answers those are.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..common.errors import QuestreeError
from ..common.files import alone_in, append_line, write_atomically
from ..common.json_files import parse_json, read_bytes, validate
from ..common.manifests import ManifestKind
from ..lm.exchanges import Exchange
from ..lm.ledger import Spent, total
from .evaluation import Evaluation
from .kept_exchanges import KeptExchanges
from .records import Record, scored_alone

FORMAT = 1

_Line = TypeVar("_Line", bound=BaseModel)

logger = logging.getLogger(__name__)


class Scores(BaseModel):
    """One line of ``scores.jsonl``.

    Attributes:
        id: the question's.
        record: the digest of the line that was scored. A question that is asked again has another.
        scores: by the metric's name.
    """

    id: str
    record: str
    scores: dict[str, float]


class Evaluated(BaseModel):
    """What an evaluation was over, in ``evaluated.json``: a folder may hold answers and scores of earlier ones too.

    Attributes:
        metrics: by name, the run's score first.
        seed: of the intervals.
        questions: their ids, in order.
    """

    metrics: list[str]
    seed: int
    questions: list[str]


class RunFolder:
    """The records of one run, in a folder that only one process writes at a time. Get one from `open_run`.

    Attributes:
        path: of the folder.
        records: by question id, the latest of each.
    """

    def __init__(self, path: Path):
        self.path = path
        self.records: dict[str, Record] = {}
        self._digests: dict[str, str] = {}
        self._asked: dict[tuple[str, float], Spent] = {}
        for record, digest in _stored(path):
            self._note(record, digest)

    @property
    def paid(self) -> Spent:
        """Return what all calls took that were made for this folder, those of answers that were superseded as well."""
        return total(list(self._asked.values()))

    def _note(self, record: Record, digest: str) -> None:
        self.records[record.id], self._digests[record.id] = record, digest
        self._asked[record.id, record.seconds] = record.spent  # a corrected record has the seconds that it had

    def append(self, record: Record) -> None:
        """Keep an answer; it is on the disk when this returns.

        Raises:
            QuestreeError: if it cannot be written.
        """
        line = record.model_dump_json(exclude={"scores"})
        self._append("records.jsonl", line)
        self._note(record, _digest(line.encode()))

    def append_exchanges(self, id: str, exchanges: Sequence[Exchange]) -> None:
        """Keep what was asked for a question, before its answer.

        Raises:
            QuestreeError: if it cannot be written.
        """
        self._append("exchanges.jsonl", KeptExchanges.of(id, exchanges).model_dump_json())

    def append_scores(self, record: Record) -> None:
        """Keep the scores of an answer that was appended before.

        Raises:
            QuestreeError: if they cannot be written.
        """
        scores = Scores(id=record.id, record=self._digests[record.id], scores=record.scores)
        self._append("scores.jsonl", scores.model_dump_json())
        self.records[record.id] = record

    def keep_result(self, evaluated: Evaluated, result: str) -> None:
        """Write down what an evaluation was over, and its figures.

        Raises:
            QuestreeError: if they cannot be written.
        """
        write_atomically(self.path / "evaluated.json", evaluated.model_dump_json())
        write_atomically(self.path / "result.json", result)

    def _append(self, name: str, line: str) -> None:
        try:
            append_line(self.path / name, line)
        except OSError as error:
            raise QuestreeError(
                f"Cannot write to {self.path / name}: {error.strerror}. What was finished before is kept: "
                "make room (or the folder writable) and run again with the same --out."
            ) from error


@contextmanager
def open_run(path: Path, identity: dict[str, Any]) -> Iterator[RunFolder]:
    """Begin a run in the folder, or go on with the one that is there.

    Args:
        path: made if need be.
        identity: what is asked, as JSON. A folder goes on only with the same.

    Raises:
        QuestreeError: if the run there is about something else (names what differs), if another process is
            writing it, if a newer version wrote it, or if its files are damaged.
    """
    with alone_in(path, "the run"):
        claim(path / "run.json", identity, ignored=_NO_PART)
        _mend_last_line(path / "records.jsonl", Record)
        _mend_last_line(path / "scores.jsonl", Scores)
        _mend_last_line(path / "exchanges.jsonl", KeptExchanges)
        yield RunFolder(path)


_NO_PART = {"metrics"}  # older versions kept them there; they are no part of what is asked


def refuse_other_run(path: Path, identity: dict[str, Any]) -> None:
    """Raise if a run in the folder could not be gone on with; nothing is written.

    Raises:
        QuestreeError: as `open_run`, if the run there is about something else.
    """
    if (path / "run.json").exists():
        claim(path / "run.json", identity, ignored=_NO_PART)


def write_run(path: Path, identity: dict[str, Any], records: Sequence[Record]) -> None:
    """Write a run that has ended into an empty folder; whatever reads runs can read it.

    Raises:
        QuestreeError: if it cannot be written.
    """
    claim(path / "run.json", identity)
    write_atomically(path / "records.jsonl", "".join(f"{record.model_dump_json()}\n" for record in records))


def claim(manifest: Path, identity: dict[str, Any], ignored: Collection[str] = (), added: Collection[str] = ()) -> None:
    """Write down what the run is about; if that was done before, compare.

    Args:
        manifest: the file.
        identity: what the run is about.
        ignored: keys that may differ.
        added: keys that manifests of older versions lack; where they stand, they are compared.

    Raises:
        QuestreeError: if it is another run; names what differs. If another version wrote it, or it is damaged.
    """
    identity = {"format": FORMAT, **json.loads(json.dumps(identity))}
    if not manifest.exists():
        write_atomically(manifest, json.dumps(identity, indent=2, ensure_ascii=False))
        return
    there = read_manifest(manifest)
    compared = {*there, *identity} - {*ignored} - ({*added} - there.keys())
    differing = sorted(key for key in compared if there.get(key) != identity.get(key))
    told = [f"{key} was {there.get(key)!r} and is now {identity.get(key)!r}" for key in differing if key != _PROMPTS]
    way = "Go on with what it was, or name another folder."
    if _PROMPTS in differing and "program" not in differing:  # the prompts of another program are others anyway
        prompts = f"the prompts or demonstrations of {identity.get('program')} have changed since"
        told = [prompts + _writer(manifest.parent), *told]
        way = "Answers to other prompts are not mixed: name another folder."
    if told:
        raise QuestreeError(f"{manifest.parent} holds another run: {'; '.join(told)}. {way}")


_PROMPTS = "compiled state"  # a digest, which tells nobody anything


def _writer(folder: Path) -> str:
    """Return which version wrote a run, or the first part of a compilation, in brackets; nothing if it did not tell."""
    for file in (folder / "surroundings.json", folder / "before" / "surroundings.json"):
        with suppress(OSError, ValueError, TypeError, KeyError):
            return f" (questree {parse_json(read_bytes(file))['versions']['questree']} wrote it)"
    return ""


def read_manifest(manifest: Path) -> dict[str, Any]:
    """Return what a run is about.

    Raises:
        QuestreeError: if there is none, it is damaged, or another version wrote it.
    """
    kind = ManifestKind("run", FORMAT, "delete it and run again, or name another folder")
    return kind.read(manifest, lambda content: validate(_Identity, content).model_dump(exclude_unset=True))


class _Identity(BaseModel):
    """What a run is about, as far as something is done with it; the rest is compared, and shown."""

    model_config = ConfigDict(extra="allow")

    lm: dict[str, Any] = {}
    retriever: dict[str, Any] | None = None
    metrics: list[str] = []


def read_records(path: str | Path) -> list[Record]:
    """Return the records of the run in a folder with their scores, in the order in which questions were first asked.

    Of a question that was asked several times, the latest record is taken. A last line that a killed process left
    unfinished is passed over, with a warning.

    Raises:
        QuestreeError: if there is no run, or several; if any other line is damaged: names it.
    """
    folder = Path(path)
    if not (folder / "run.json").exists() and (inside := [one.name for one in _places(folder) if one != folder]):
        raise QuestreeError(f"{folder} holds the runs {', '.join(inside)}; give the folder of one of them.")
    return list(RunFolder(folder).records.values())


@dataclass(frozen=True)
class StoredRun:
    """The run of a program over questions, as it was stored.

    Attributes:
        name: unique among the runs that were read together.
        records: the latest of each question of the last evaluation, in its order; while there is none that ended, or
            an older version made it, of all questions, in the order in which they were first asked.
        identity: what the run is about: program, settings, LM, retriever (`run_identity`).
        folder: that it was read from.
        paid: what all calls took that were made for it; None if that is not known.
        metrics, seed: of the last evaluation; no metrics if that is not known.
        others: what the folder holds beside the records.
    """

    name: str
    records: tuple[Record, ...]
    identity: dict[str, Any]
    folder: Path = Path()
    paid: Spent | None = None
    metrics: tuple[str, ...] = ()
    seed: int = 0
    others: tuple[Record, ...] = ()

    @property
    def simulated(self) -> bool:
        """Return whether the simulated LM answered."""
        return bool(self.identity.get("lm", {}).get("simulated"))

    @property
    def metric(self) -> str:
        """Return the metric that the run was scored by first.

        Raises:
            QuestreeError: if no answer is scored yet.
        """
        scored = (name for record in self.records for name in record.scores)
        told = self.metrics or self.identity.get("metrics")  # older versions kept them there
        metric: str | None = next(iter(told or scored), None)
        if metric is None:
            raise self._unscored()
        return metric

    @property
    def evaluation(self) -> Evaluation:
        """Return what the scored answers add up to: while a run goes on, or if it was killed, some have no score yet.

        Raises:
            QuestreeError: if no answer is scored yet.
        """
        metric = self.metric
        scored = tuple(record for record in self.records if metric in record.scores)
        if not scored:
            raise self._unscored()
        shown = scored_alone(scored, self.metrics) if self.metrics else scored
        return Evaluation(metric, shown, self.simulated, self.seed, paid_for_all=self.paid)

    def _unscored(self) -> QuestreeError:
        return QuestreeError(f"No answer of the run {self.name} is scored yet; run the same evaluation again.")


def stored_runs(folders: Sequence[Path]) -> list[StoredRun]:
    """Return the runs in these folders; the folder of a comparison or an ablation stands for all runs in it.

    Raises:
        QuestreeError: if a folder holds no run, or a run is damaged or has no finished question.
    """
    runs: dict[str, StoredRun] = {}
    for folder in folders:
        for place in _places(folder):
            name = place.name if place.name not in runs else str(place)
            runs[name] = _stored_run(name, place)
    return list(runs.values())


def _stored_run(name: str, place: Path) -> StoredRun:
    kept, evaluated = RunFolder(place), _evaluated(place)
    ids = [id for id in dict.fromkeys(evaluated.questions if evaluated else kept.records) if id in kept.records]
    if not ids:
        raise QuestreeError(f"The run in {place} has no finished question yet.")
    if more := len(kept.records) - len(ids):
        said = "%s holds answers to %d more questions than its last evaluation had; that evaluation is shown."
        logger.warning(said, place, more)
    metrics = evaluated.metrics if evaluated else ()
    return StoredRun(
        name,
        tuple(_with_first(metrics, kept.records.pop(id)) for id in ids),
        read_manifest(place / "run.json"),
        place,
        kept.paid,
        tuple(metrics),
        evaluated.seed if evaluated else 0,
        others=tuple(kept.records.values()),
    )


def _evaluated(folder: Path) -> Evaluated | None:
    """Return what the last evaluation in a folder was over; None if none ended, or an older version made it.

    Raises:
        QuestreeError: if the file is damaged.
    """
    file = folder / "evaluated.json"
    try:
        return validate(Evaluated, parse_json(read_bytes(file)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        way = "run the same evaluation again, or delete the file to read all that the folder holds"
        raise QuestreeError(f"{file} is damaged ({problem}): {way}.") from problem


def _with_first(metrics: Sequence[str], record: Record) -> Record:
    """Return the record with the scores by these metrics ahead of others: a capsule tells its metric by that."""
    first = {name: record.scores[name] for name in metrics if name in record.scores}
    return record.model_copy(update={"scores": first | record.scores})


def read_exchanges(folder: Path) -> dict[str, list[Exchange]]:
    """Return what was asked for each question of a run when it was asked last; none of those of an older version.

    Raises:
        QuestreeError: if a line is damaged; names it.
    """
    return {id: kept.exchanges() for id, kept in kept_exchanges(folder).items()}


def kept_exchanges(folder: Path) -> dict[str, KeptExchanges]:
    """Return the same, packed.

    Raises:
        QuestreeError: if a line is damaged; names it.
    """
    return {line.id: line for line, _ in _lines(folder / "exchanges.jsonl", KeptExchanges)}


def _places(folder: Path) -> list[Path]:
    if (folder / "records.jsonl").exists():
        return [folder]
    inside = runs_inside(folder)
    if not inside:
        raise QuestreeError(f"{folder} holds no run; give the folder of an evaluation, comparison or ablation.")
    return inside


def runs_inside(folder: Path) -> list[Path]:
    """Return the folders of the runs in a folder, the one first that the others are compared with.

    A comparison tells its order, and a compilation is read from before to after; others stand as they began.
    """
    named = {name: place for place, name in enumerate([*_compared(folder), "before", "after"])}
    inside = [file.parent for file in folder.glob("*/records.jsonl")]
    return sorted(inside, key=lambda run: (named.get(run.name, len(named)), _began(run), run.name))


def _compared(folder: Path) -> list[str]:
    """Return the programs of a finished comparison in their order; none if it tells of none."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return [str(one["program"]) for one in parse_json(read_bytes(folder / "comparison.json"))["programs"]]
    return []


def _began(run: Path) -> int:
    manifest = run / "run.json"  # written once
    return manifest.stat().st_mtime_ns if manifest.exists() else 0


def _stored(path: Path) -> Iterator[tuple[Record, str]]:
    """Yield each record with the digest of its line."""
    scores: dict[str, dict[str, float]] = {}
    for line, _ in _lines(path / "scores.jsonl", Scores):
        scores.setdefault(line.record, {}).update(line.scores)
    for record, digest in _lines(path / "records.jsonl", Record):
        known = record.scores | scores.get(digest, {})  # older versions kept scores in the record
        yield record.model_copy(update={"scores": known}), digest


def _lines(file: Path, kind: type[_Line]) -> Iterator[tuple[_Line, str]]:
    """Yield what the file's lines hold, each with the digest of its line."""
    lines = _content(file).split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            yield kind.model_validate_json(line), _digest(line)
        except ValidationError as error:
            if number == len(lines):
                logger.warning("%s, line %d: left unfinished by an interrupted run; dropped.", file, number)
                continue
            raise QuestreeError(
                f"{file}, line {number} is damaged ({error.errors()[0]['msg']}). Delete that line to "
                f"{'ask' if kind is Record else 'score'} its question again; the other lines are good."
            ) from error


def _content(file: Path) -> bytes:
    """Return the bytes of a file of lines; none if there is no such file.

    Raises:
        QuestreeError: if it cannot be read; a link is not followed, as the run would then write elsewhere.
    """
    try:
        return read_bytes(file, inf)
    except FileNotFoundError:
        return b""
    except (OSError, ValueError) as problem:
        raise QuestreeError(f"{file} cannot be read ({problem}); name another folder.") from problem


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]


def _mend_last_line(file: Path, kind: type[BaseModel]) -> None:
    """Remove a last line that was left unfinished, or end it if only its end is missing."""
    content = _content(file)
    whole = content.rfind(b"\n") + 1
    if whole == len(content):
        return
    with file.open("r+b") as lines:
        try:
            kind.model_validate_json(content[whole:])
            lines.seek(0, os.SEEK_END)
            lines.write(b"\n")
        except ValidationError:
            logger.warning("%s: its last line was left unfinished by an interrupted run; dropped.", file)
            lines.truncate(whole)
