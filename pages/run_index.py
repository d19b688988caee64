"""Runs in one file of SQLite, which a page reads no more of than it shows: ten thousand questions stay quick.

Lists need a line of each answer; a page of an answer needs its whole record, and what was asked for it. What takes
long, reading every record and comparing the runs, is done once for as long as the runs' files stay as they are.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from ..common.caches import cache_folder
from ..common.errors import QuestreeError
from ..common.files import in_turn, replacing
from ..common.manifests import installed_versions, json_hash
from ..evaluation.capsule.sources import ShownRun as ShownRun
from ..evaluation.capsule.sources import read_sources
from ..evaluation.comparison.page import plots_of
from ..evaluation.comparison.result import Comparison
from ..evaluation.evaluation import Evaluation
from ..evaluation.kept_exchanges import KeptExchanges
from ..evaluation.records import Record
from ..evaluation.stored_runs import StoredRun, runs_inside
from ..lm.exchanges import Exchange
from .asked_question import AnsweredQuestion

FORMAT = 4
"""Of the file. An index of another format is made anew."""

MOST = 16
"""Indexes in the cache folder. One more takes the place of the one that was opened longest ago."""

RIGHT = 1.0
"""The score from which an answer counts as right, as in `questree analyse misled`."""

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE rows (run INTEGER, id TEXT, question TEXT, gold TEXT, answer TEXT, verdict TEXT, style TEXT,
                   hops INTEGER, failed INTEGER, cites_falsely INTEGER);
CREATE TABLE answers (run INTEGER, id TEXT, record BLOB, asked BLOB, PRIMARY KEY (run, id));
"""

logger = logging.getLogger(__name__)


class Row(NamedTuple):
    """What lists say of an answer.

    Attributes:
        id: of the question; with a digest, if an earlier run has another question of its id (`_names`).
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


class IndexedRun(NamedTuple):
    """A run: what it is about (`run_identity`), and the rows of its answers by the questions' ids."""

    number: int
    name: str
    simulated: bool
    identity: Mapping[str, Any]
    rows: Mapping[str, Row]


class RunIndex:
    """An index that is there.

    Attributes:
        runs: by name.
        compared: of each group of runs with the same questions and the same metric, the table (``facts``, ``lines``,
            ``details``, ``note``) and its ``plots``.
        left_out: why runs of the folder are left out.

    Raises:
        sqlite3.Error, ValueError: the file is no index.
    """

    def __init__(self, store: sqlite3.Connection):
        self._store, self._alone = store, Lock()
        facts = dict(store.execute("SELECT name, value FROM facts"))
        rows: dict[int, dict[str, Row]] = {}
        for run, *values in store.execute("SELECT * FROM rows ORDER BY rowid"):
            rows.setdefault(run, {})[values[0]] = Row(*values)
        runs = enumerate(json.loads(facts["runs"]))
        self.runs = {run["name"]: IndexedRun(number, **run, rows=rows[number]) for number, run in runs}
        self.compared: list[dict[str, Any]] = json.loads(facts["compared"])
        self.left_out: list[str] = json.loads(facts["left_out"])

    def record(self, run: str, id: str) -> Record:
        """Return the record of an answer."""
        return Record.model_validate_json(zlib.decompress(self._whole(run, id)[0]))

    def asked(self, run: str, id: str) -> list[Exchange]:
        """Return what was asked for an answer outside the program; empty where that was not kept."""
        packed = self._whole(run, id)[1]
        return KeptExchanges(id=id, packed=packed).exchanges() if packed else []

    def _whole(self, run: str, id: str) -> tuple[bytes, str]:
        found = "SELECT record, asked FROM answers WHERE run = ? AND id = ?"
        with self._alone:
            record, asked = self._store.execute(found, (self.runs[run].number, id)).fetchone()
        return record, asked


def open_index(source: Path) -> RunIndex:
    """Return the index of a folder of runs, or of a capsule, as its files are now.

    Raises:
        QuestreeError: the runs cannot be read.
    """
    source = source.resolve()
    return kept_index(str(source), _files(source), lambda: _readable(source))


def _readable(source: Path) -> tuple[list[ShownRun], list[str]]:
    """Return the runs of a folder or capsule, and why others of the folder are left out.

    Raises:
        QuestreeError: none can be read.
    """
    try:
        return read_sources([source]), []
    except QuestreeError:
        runs, left_out = list[ShownRun](), list[str]()
        for folder in runs_inside(source):
            try:
                runs += read_sources([folder])
            except QuestreeError as error:
                left_out.append(str(error))
        if not runs:
            raise
        return runs, left_out


def kept_index(source: str, version: Any, read: Callable[[], tuple[Sequence[ShownRun], Sequence[str]]]) -> RunIndex:
    """Return the index of runs: the one in the cache folder, if it is of this version of them.

    The cache folder keeps `MOST` indexes. Where it cannot be written, the index is made in memory.

    Args:
        source: tells these runs from others.
        version: what changes when they do, as JSON.
        read: returns the runs, and why others are left out.

    Raises:
        QuestreeError: from `read`.
    """
    state = json_hash([FORMAT, installed_versions(["questree"]), version])
    file = cache_folder() / "run-pages" / f"{json_hash(source)[:16]}.sqlite"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with in_turn(file.with_suffix(".lock"), f"reading {source}"):
            if (found := _found(file, state)) is not None:
                file.touch()
                return found
            with replacing(file) as unfinished:
                unfinished.unlink(missing_ok=True)
                _fill(_connect(unfinished), *read(), state).close()
            _remove_oldest(file.parent)
            return RunIndex(_connect(file))
    except (OSError, sqlite3.OperationalError) as problem:
        logger.warning("%s cannot be written (%s): the runs of %s are kept in memory.", file, problem, source)
        return index_of(*read())


def index_of(runs: Sequence[ShownRun], left_out: Sequence[str] = ()) -> RunIndex:
    """Return an index in memory, of runs with unique names."""
    return RunIndex(_fill(_connect(":memory:"), runs, left_out))


def _files(source: Path) -> list[Any]:
    """Return what changes when a file of the runs does."""
    files = [source] if source.is_file() else sorted([*source.glob("*.json*"), *source.glob("*/*.json*")])
    stats = [(str(file), file.stat()) for file in files]
    return [(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats]


def _remove_oldest(folder: Path) -> None:
    """Remove the indexes that were opened longest ago, beyond `MOST`; a server that has one open goes on reading it."""
    oldest_first = sorted(folder.glob("*.sqlite"), key=lambda file: file.stat().st_mtime_ns)
    for file in oldest_first[:-MOST]:
        with suppress(OSError):  # Windows removes no file that is open
            file.unlink()


def _connect(place: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(place, check_same_thread=False)  # one thread at a time, by a lock


def _found(file: Path, state: str) -> RunIndex | None:
    """Return the index in a file; None if there is none, it is damaged, or of other files."""
    if not file.exists():
        return None
    store = _connect(file)
    try:
        known = store.execute("SELECT value FROM facts WHERE name = 'state'").fetchone()
        return RunIndex(store) if known == (state,) else None
    except (sqlite3.Error, KeyError, TypeError, ValueError):
        return None


def _fill(
    store: sqlite3.Connection, runs: Sequence[ShownRun], left_out: Sequence[str], state: str = ""
) -> sqlite3.Connection:
    """Write the index of runs into an empty store, and return it."""
    store.executescript(_TABLES)
    name_of = _names([one.run for one in runs])
    for number, one in enumerate(runs):
        store.executemany(f"INSERT INTO rows VALUES (?{', ?' * len(Row._fields)})", _rows(number, one.run, name_of))
        store.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", _answers(number, one, name_of))
    named = [{"name": one.run.name, "simulated": one.run.simulated, "identity": one.run.identity} for one in runs]
    compared = _compared([one.run for one in runs], name_of)
    told = {"runs": named, "compared": compared, "left_out": list(left_out)}
    facts = {name: json.dumps(value) for name, value in told.items()} | {"state": state}
    store.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
    store.commit()
    return store


_NameOf = Callable[[Record], str]


def _names(runs: Sequence[StoredRun]) -> _NameOf:
    """Return what names a record's question: its id; with a digest, if an earlier run has it in other words or gold."""
    first: dict[str, Any] = {}
    for record in (record for run in runs for record in run.records):
        first.setdefault(record.id, (record.question, record.answers))

    def name(record: Record) -> str:
        asked = record.question, record.answers
        return record.id if asked == first[record.id] else f"{record.id}-{json_hash(asked)[:8]}"

    return name


def _rows(number: int, run: StoredRun, name_of: _NameOf) -> Iterator[tuple[Any, ...]]:
    evaluation = _evaluation(run)
    for record in run.records:
        gold, failed = next(iter(record.answers), ""), record.failure is not None
        worth = _verdict(record, evaluation.metric if evaluation else "")
        falsely = AnsweredQuestion.of_prediction(record, simulated=run.simulated).cites_falsely()
        name = name_of(record)
        yield number, *Row(name, record.question, gold, record.answer, *worth, record.hops, failed, falsely)


def _answers(number: int, one: ShownRun, name_of: _NameOf) -> Iterator[tuple[int, str, bytes, str]]:
    for record in one.run.records:
        kept = one.asked.get(record.id)
        yield number, name_of(record), zlib.compress(record.model_dump_json().encode(), 1), kept.packed if kept else ""


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
    if score >= RIGHT:
        return "right", "good"
    return ("wrong", "bad") if score == 0 else (f"{score:.2f}", "warn")


def _compared(runs: Sequence[StoredRun], name_of: _NameOf) -> list[dict[str, Any]]:
    """Return a comparison of each group of runs with the same scored questions and the same metric."""
    groups: dict[Any, list[tuple[StoredRun, Evaluation]]] = {}
    for run in runs:
        if (one := _evaluation(run)) is not None:
            groups.setdefault((one.metric, frozenset(map(name_of, one.records))), []).append((run, one))
    compared = []
    for group in groups.values():
        comparison = _comparison(group)
        table = comparison.table
        shown = {"facts": table.facts, "lines": table.lines, "details": table.details, "note": table.note}
        compared.append({**shown, "plots": plots_of(comparison)})
    return compared


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
        lm=_joined(str(run.identity.get("lm", {}).get("name", "")) for run in runs),
        retriever=_joined(str((run.identity.get("retriever") or {}).get("name", "")) for run in runs),
    )


def _joined(names: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name))
