"""The file of one run or several, in SQLite. One process writes it, others may read it (docs/run-file.md).

A kill loses only what was not finished: each transaction leaves a whole file. A file may come from anyone. So its
tables must be exactly these, and no more is read at a time than the file can hold.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from ..common.errors import QuestreeError
from ..common.files import alone_in
from ..common.json_files import check_regular, parse_json
from ..lm.spent import Spent

NAME = "runs.db"
"""The name of the file in the folder of an evaluation, a comparison or a compilation."""

FORMAT = 5
LARGEST = 16 << 20
"""Characters of a value."""

_APPLICATION = 0x51545245  # "QTRE"
_FORMER = "18bee41"  # the last commit whose runs are folders of JSON lines, and whose capsules are zip files
_LONG = 200  # characters: longer texts stand in a table of their own, each once
_REFERENCE = "text_digest"
_DIGEST = re.compile(rf'"{_REFERENCE}":\s*"(\w+)"')
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names a second file, which SQLite would delete

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE run (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, place INTEGER,
    program TEXT, task TEXT, lm TEXT, simulated INTEGER, retriever TEXT,
    metrics TEXT, seed INTEGER, about TEXT NOT NULL, environment TEXT, policy TEXT
);
CREATE TABLE questions (
    run INTEGER NOT NULL REFERENCES run, id TEXT NOT NULL, place INTEGER,
    question TEXT, gold TEXT, answer TEXT, failure TEXT, hops INTEGER,
    calls INTEGER, tokens_in INTEGER, tokens_out INTEGER, cost REAL, seconds REAL,
    record TEXT NOT NULL, details TEXT NOT NULL, limits TEXT,
    PRIMARY KEY (run, id)
);
CREATE TABLE scores (
    run INTEGER NOT NULL REFERENCES run, id TEXT NOT NULL, metric TEXT NOT NULL, score REAL NOT NULL,
    PRIMARY KEY (run, id, metric)
);
CREATE TABLE steps (
    run INTEGER NOT NULL REFERENCES run, id TEXT NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL,
    kind TEXT NOT NULL, name TEXT NOT NULL, request TEXT, outcome TEXT, fault TEXT,
    spent TEXT, dropped TEXT, tokens_in INTEGER, tokens_out INTEGER, seconds REAL,
    PRIMARY KEY (run, id, number)
);
CREATE TABLE payments (
    call INTEGER PRIMARY KEY, run INTEGER REFERENCES run, ended INTEGER NOT NULL,
    calls INTEGER NOT NULL, cached INTEGER NOT NULL, failed INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, words_in INTEGER NOT NULL, words_out INTEGER NOT NULL,
    cost REAL NOT NULL, estimated INTEGER NOT NULL
);
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY, score REAL NOT NULL, questions INTEGER NOT NULL, state TEXT NOT NULL
);
CREATE TABLE texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL);
"""


_REFERRED = " UNION ".join(
    f"SELECT tree.value FROM {table}, json_tree({table}.{column}) AS tree WHERE tree.key = '{_REFERENCE}'"
    for table, column in [
        *(("questions", "record"), ("questions", "details"), ("run", "about"), ("run", "environment")),
        *(("steps", "request"), ("steps", "outcome"), ("candidates", "state")),
    ]
)


class RunFileError(QuestreeError):
    """A file that cannot be read as a file of runs, or must not be."""


class EmptyFileError(RunFileError):
    """A file that a kill left before anything was written."""


class RunFile:
    """A file of runs that is open for reading. Several threads may read it."""

    def __init__(self, path: Path, store: sqlite3.Connection):
        self.path, self._store = path, store
        self._alone = threading.RLock()
        self._bytes = path.stat().st_size if path.exists() else 0

    def rows(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Their texts are bounded, each and all together."""
        found, read = list[tuple[Any, ...]](), 0
        with self._alone, self._reading():
            for row in self._store.execute(query, given):
                sizes = [len(value) for value in row if isinstance(value, (str, bytes))]
                read += sum(sizes)
                if max(sizes, default=0) > LARGEST or read > max(self._bytes, 1 << 20) * 2:
                    raise RunFileError(f"{self.path} is no valid file of runs: a text in it is too large.")
                found.append(row)
        return found

    def value(self, text: str | None) -> Any:
        """Return the value of a JSON column, with its long texts."""
        return None if text is None else self.values([text])[0]

    def values(self, columns: Sequence[str | None]) -> list[Any]:
        """Return the same of several columns."""
        try:
            plain = [None if column is None else parse_json(str(column).encode()) for column in columns]
            digests = list({digest for column in columns for digest in _DIGEST.findall(str(column))})
            texts = dict[str, str]()
            for start in range(0, len(digests), 500):
                some = json.dumps(digests[start : start + 500])
                query = "SELECT digest, text FROM texts WHERE digest IN (SELECT value FROM json_each(?))"
                texts |= self.rows(query, some)
            return [_with_texts(one, texts, [4 * LARGEST]) for one in plain]
        except ValueError as error:
            raise RunFileError(f"{self.path} is damaged: {error}.") from error

    def fact(self, name: str) -> Any:
        """Return a fact about the whole file; None if it is not there."""
        found = self.rows("SELECT value FROM facts WHERE name = ?", name)
        return self.value(found[0][0]) if found else None

    def paid(self) -> dict[int | None, Spent]:
        """Return what was paid for each run, with requests that got no answer; under None what belongs to no run."""
        amounts = tuple(Spent.model_fields)
        sums = ", ".join(f"total({name})" for name in amounts)
        found = {}
        for run, *row in self.rows(f"SELECT run, {sums} FROM payments GROUP BY run"):
            if not all(isfinite(amount) and amount >= 0 for amount in row):
                raise RunFileError(f"{self.path} is damaged: a payment in it is negative or infinite.")
            found[run] = Spent(**dict(zip(amounts, row, strict=True)))
        return found

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise RunFileError(f"{self.path} cannot be read ({error}); it is damaged, or no file of runs.") from error


class WritableFile(RunFile):
    """A file of runs that this process writes, from any thread. Get one from `writing`."""

    def __init__(self, path: Path, store: sqlite3.Connection):
        super().__init__(path, store)
        self._waiting: list[_Transaction] = []
        self._queue = threading.Lock()

    def rows(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, without checks: this process wrote them."""
        with self._alone, self._reading():
            return self._store.execute(query, given).fetchall()

    def write(self, *statements: tuple[str, Sequence[Any]], wait: bool = True, lasting: bool = False) -> None:
        """Write in one transaction; it is on the disk when this returns, with what other threads write meanwhile.

        Args:
            lasting: whether to try again with the next transaction where it cannot be written now.
        """
        wanted = _Transaction(statements, lasting)
        with self._queue:
            self._waiting.append(wanted)
        if wait:
            with self._alone:
                if not wanted.ended:
                    self._write_waiting()
            if wanted.error is not None:
                raise self._unwritten(wanted.error)

    def order(self, names: Sequence[str]) -> None:
        """Let runs be read in this order, before all others."""
        place = "UPDATE run SET place = ? WHERE name = ?"
        self.write(("UPDATE run SET place = NULL", ()), *((place, one) for one in enumerate(names, start=1)))

    def set_fact(self, name: str, value: Any) -> None:
        """Write a fact about the whole file."""
        self.write(("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value, ensure_ascii=False))))

    def pay(self, call: int, run: int | None, spent: Spent, *, ended: bool) -> None:
        """Keep what an ended call took; or, before a request is sent, what its call has sent including that request.

        What cannot be written now is written with the next transaction.
        """
        insert = f"INSERT OR REPLACE INTO payments VALUES (?, ?, ?{', ?' * len(Spent.model_fields)})"
        values = (call, run, ended, *spent.model_dump().values())
        with suppress(QuestreeError):  # if writing fails for good, the next answer raises the error
            self.write((insert, values), wait=not ended, lasting=True)

    def kept(self, value: Any) -> tuple[str, list[tuple[str, Sequence[Any]]]]:
        """Return a value as JSON without its long texts, and the statements that write those."""
        texts: dict[str, str] = {}
        plain = _without_texts(value, texts)
        insert = "INSERT OR IGNORE INTO texts VALUES (?, ?)"
        return json.dumps(plain, ensure_ascii=False), [(insert, pair) for pair in texts.items()]

    def sweep(self) -> None:
        """Remove the texts that nothing refers to any more."""
        self.write((f"DELETE FROM texts WHERE digest NOT IN ({_REFERRED})", ()))

    def close(self) -> None:
        """Write what is waiting, and close the file."""
        with self._alone:
            if self._waiting:
                self._write_waiting()
            self._store.close()

    def _write_waiting(self) -> None:
        """Write all that is waiting in one transaction. If that fails, each caller that waits for it gets the error."""
        error: sqlite3.Error | None = None
        with self._queue:
            group, self._waiting = self._waiting, []
        try:
            self._store.execute("BEGIN IMMEDIATE")
            for one in group:
                for statement, values in one.statements:
                    self._store.execute(statement, values)
            self._store.execute("COMMIT")
        except sqlite3.Error as problem:
            error = problem
            with suppress(sqlite3.Error):
                self._store.execute("ROLLBACK")
            with self._queue:
                self._waiting = [one for one in group if one.lasting] + self._waiting
        for one in group:
            one.ended, one.error = True, error

    def _unwritten(self, error: sqlite3.Error) -> QuestreeError:
        return QuestreeError(
            f"Cannot write to {self.path}: {error}. What was finished before is kept: make room, make the folder "
            "writable, or allow more open files (ulimit -n), and run again with the same --out."
        )


@dataclass
class _Transaction:
    """Statements that are to be written together."""

    statements: Sequence[tuple[str, Sequence[Any]]]
    lasting: bool
    ended: bool = False
    error: sqlite3.Error | None = None


@contextmanager
def writing(folder: Path, kind: str, *, shared: bool = False, durable: bool = True) -> Iterator[WritableFile]:
    """Open the file of runs in a folder for writing; it is made if need be. What a kill left unfinished is undone.

    Args:
        kind: what is in the file: ``evaluation``, ``comparison``, …. Another kind is not mixed with it.
        shared: whether other processes may write it too.
        durable: whether what is written is to outlive a power cut.
    """
    _refuse_former(folder)
    path = folder / NAME
    if (outer := holder(folder.parent, folder.name)) is not None:
        raise QuestreeError(f"{outer} holds the run {folder.name}: run what made it again, or name another folder.")
    with nullcontext() if shared else alone_in(folder, f"the {kind}"):
        for place in (path, path.with_name(f"{NAME}-journal")):
            if place.is_symlink():
                raise QuestreeError(f"{place} is a link, and nothing is written through it; remove the link.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            store = _connect(path, "rwc")
            store.execute(f"PRAGMA synchronous = {'NORMAL' if durable else 'OFF'}")
            store.execute("BEGIN IMMEDIATE")
            if not store.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in (
                    *_statements(),
                    f"PRAGMA application_id = {_APPLICATION}",
                    f"PRAGMA user_version = {FORMAT}",
                ):
                    store.execute(statement)
            store.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise QuestreeError(
                f"Cannot write to {path}: {error}; make room (or the folder writable), or name another."
            ) from error
        with closing(WritableFile(path, store)) as file:
            _check(file)
            there = file.fact("kind")
            if there is None:
                file.set_fact("kind", kind)
            elif there != kind:
                raise QuestreeError(
                    f"{folder} holds a run of {there}, and no run of {kind} can be added to it; name another folder."
                )
            yield file


@contextmanager
def reading(path: Path) -> Iterator[RunFile]:
    """Open a file of runs for reading; it may be a stranger's, and another process may be writing it."""
    with TemporaryDirectory(prefix="questree-") as folder, closing(_opened(path, Path(folder))) as store:
        file = RunFile(path, store)
        _check(file)
        yield file


def _opened(path: Path, folder: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing: of a file whose writer was killed, to a copy that was put right."""
    try:
        check_regular(path.stat())
        with path.open("rb") as begin:
            head = begin.read(16)
    except (OSError, ValueError) as error:
        raise RunFileError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if head[:2] == b"PK":
        raise RunFileError(f"{path} is a capsule of another form: questree up to commit {_FORMER} reads it.")
    if head not in (b"", b"SQLite format 3\0"):
        raise RunFileError(f"{path} is no file of runs.")
    store = _connect(path, "ro")
    try:
        store.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return store
    except sqlite3.DatabaseError as error:
        store.close()
        journal = path.with_name(f"{path.name}-journal")
        if not journal.is_file() or journal.is_symlink():
            raise RunFileError(f"{path} cannot be read ({error}); it is damaged, or no file of runs.") from error
        copyfile(path, folder / NAME)
        copyfile(journal, folder / f"{NAME}-journal")
        if _SUPER_JOURNAL in (folder / f"{NAME}-journal").read_bytes()[-8:]:
            raise RunFileError(f"{journal} names another file, which no journal of ours does; remove it.") from None
        return _connect(folder / NAME, "rw")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    place = path.resolve().as_uri()
    store = sqlite3.connect(f"{place}?mode={mode}", uri=True, timeout=10, isolation_level=None, check_same_thread=False)
    for setting in ("trusted_schema = OFF", "cell_size_check = ON"):
        store.execute(f"PRAGMA {setting}")
    return store


def _check(file: RunFile) -> None:
    """Refuse a file whose tables are not those of `TABLES`."""
    ((application,),), ((format,),) = (file.rows(f"PRAGMA {name}") for name in ("application_id", "user_version"))
    tables = [sql for (sql,) in file.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")]
    if not tables:
        raise EmptyFileError(f"{file.path} is empty: its writer was ended; run the same again.")
    if application != _APPLICATION:
        raise RunFileError(f"{file.path} is no file of runs: another program's SQLite file.")
    if format != FORMAT:
        age = "a newer" if format > FORMAT else "an older"
        raise RunFileError(
            f"{file.path} was written by {age} questree (its format is {format}, and {FORMAT} here): read it with that."
        )
    if tables != _statements():
        raise RunFileError(f"{file.path} is no valid file of runs: its tables are not those of questree.")


def _statements() -> list[str]:
    return [one.strip() for one in TABLES.split(";") if one.strip()]


def holder(path: Path, name: str = "") -> Path | None:
    """Return the file that is at a place, if it holds the run of this name; None if there is none."""
    file = path / NAME if path.is_dir() else path
    if not file.is_file():
        return None
    if not name:
        return file
    with reading(file) as found:
        return file if found.rows("SELECT 1 FROM run WHERE name = ?", name) else None


def _refuse_former(folder: Path) -> None:
    """Refuse a folder of runs in the former format, which was not one file."""
    if (folder / "records.jsonl").exists() or any(folder.glob("*/records.jsonl")):
        raise RunFileError(f"{folder} holds runs in another form: questree up to commit {_FORMER} reads them.")


def find(place: Path) -> list[tuple[Path, str]]:
    """Return the files at a place, each with the name of the run that is meant; empty for all runs in it.

    A place is a file, its folder, or one of them followed by the name of a run: ``out/searchain``. A folder of such
    folders stands for all of them.
    """
    for base in (place, *place.parents):
        name = "" if base == place else place.relative_to(base).as_posix()
        if (file := holder(base, name)) is not None:
            return [(file, name)]
        if base.exists() or name.count("/") > 3:
            break
    _refuse_former(place)
    if inside := sorted(place.glob(f"*/{NAME}"), key=lambda file: (file.stat().st_mtime_ns, file)):
        return [(file, "") for file in inside]
    raise RunFileError(f"{place} holds no run; give the folder, or the file, of an evaluation, comparison or ablation.")


def _without_texts(value: Any, texts: dict[str, str], depth: int = 0) -> Any:
    """Return a JSON value with references in the place of its long texts, which are added to ``texts``."""
    if isinstance(value, str):
        if len(value) <= _LONG or depth < 2:  # the question and the answer stay in the row
            return value
        digest = hashlib.sha256(value.encode()).hexdigest()[:32]
        texts[digest] = value
        return {_REFERENCE: digest}
    if isinstance(value, Mapping):
        return {name: _without_texts(one, texts, depth + 1) for name, one in value.items()}
    return [_without_texts(one, texts, depth + 1) for one in value] if isinstance(value, (list, tuple)) else value


def _with_texts(value: Any, texts: Mapping[str, str], room: list[int]) -> Any:
    """Return a JSON value with its long texts in the place of the references."""
    if isinstance(value, dict):
        if value.keys() == {_REFERENCE}:
            text = texts.get(str(value[_REFERENCE]))
            room[0] -= len(text or "")
            if text is None or room[0] < 0:
                raise ValueError("a text is missing" if text is None else "its texts are too many")
            return text
        return {name: _with_texts(one, texts, room) for name, one in value.items()}
    return [_with_texts(one, texts, room) for one in value] if isinstance(value, list) else value
