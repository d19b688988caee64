"""An MLflow store: whether it can be used, which one is in use, and runs that killed processes left open in it."""

from __future__ import annotations

import logging
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from ..common.errors import QuestreeError

_SQLITE = "sqlite:///"


def sqlite_file(uri: str) -> Path | None:
    """Return the file of an SQLite store; None for another store."""
    return Path(uri.removeprefix(_SQLITE).partition("?")[0]) if uri.startswith(_SQLITE) else None


@contextmanager
def store_in_use(uri: str) -> Iterator[None]:
    """Let MLflow write to this store inside the block."""
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)


def bound_mlflow() -> None:
    """Let MLflow, before it is imported, try a server for 14 seconds and log warnings alone, unless its variables say.

    By itself it tries for four minutes, and logs that it makes tables, which is silenced even after its import. It also
    logs each error of its store with a traceback of a hundred lines; our callers report it in one line.
    """
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # after 2, 4 and 8 seconds
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)


def check_store(uri: str) -> None:
    """Check that an SQLite store can be written: if not, MLflow would try for two minutes.

    Raises:
        sqlite3.OperationalError: if it cannot be written.
    """
    if (file := sqlite_file(uri)) is None:
        return
    with closing(sqlite3.connect(file, timeout=0)) as store:
        try:
            store.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):  # another process writes, and MLflow waits for it
                raise


def check_exists(uri: str) -> None:
    """Refuse an SQLite store that is not there when runs are only read: MLflow would make one."""
    file = sqlite_file(uri)
    if file is not None and not file.exists():
        raise QuestreeError(f"There is no MLflow store at {file}. Name the store of your runs: --tracking-uri.")


def without_password(uri: str) -> str:
    """Return the URI to show, without user and password; of an invalid URI, only its beginning."""
    try:
        parts = urlsplit(uri)
        if parts.password is None and parts.username is None:
            return uri
        return urlunsplit(parts._replace(netloc=f"…@{parts.hostname}" + (f":{parts.port}" if parts.port else "")))
    except ValueError:  # a bracket in a password, or an invalid port
        return f"{uri.partition(':')[0]}:…"


_HOST, PROCESS = "questree.host", "questree.process"


def process_tags() -> dict[str, str]:
    """Return the tags by which a later process finds the runs of this one."""
    return {_HOST: socket.gethostname(), PROCESS: str(os.getpid())}


def end_dead_runs(experiment: str) -> None:
    """Mark as killed the runs of an experiment whose process, on this machine, has died.

    A run stays as it is if another process has its process's number by now.
    """
    if os.name != "posix":  # on Windows, os.kill(process, 0) would interrupt the process
        return
    import mlflow

    client = mlflow.MlflowClient()
    ours = f"attributes.status = 'RUNNING' and tags.`{_HOST}` = '{socket.gethostname()}'"
    for run in client.search_runs([experiment], ours):
        if not _lives(int(run.data.tags[PROCESS])):
            client.set_terminated(run.info.run_id, "KILLED")


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # a process of another user
        return True
    return True
