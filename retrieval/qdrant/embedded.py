"""Qdrant's local mode: a collection in a folder, searched in this process by comparing it with everything."""

from __future__ import annotations

import atexit
import io
import json
import pickle
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ...common.errors import IndexRefused, QuestreeError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_OPEN: WeakValueDictionary[Path, QdrantClient] = WeakValueDictionary()
_LOCK = threading.Lock()
_HELD = ("PointStruct", "SparseVector")
"""The classes of what local mode keeps in its files."""


def open_folder(folder: Path) -> QdrantClient:
    """Return the client of a folder, which is made if need be. A folder serves one process, and that has one client."""
    from qdrant_client import QdrantClient

    with _LOCK:
        if (known := _OPEN.get(folder)) is not None:
            return known
        try:
            _check(folder)
            client = QdrantClient(path=str(folder), force_disable_check_same_thread=True)
        except RuntimeError as problem:
            raise QuestreeError(
                f"Another process has opened {folder}, and Qdrant without a server serves one at a time. End that one, "
                "or run a Qdrant server and name its address: qdrant://HOST:6333/COLLECTION"
            ) from problem
        except (OSError, ValueError, KeyError, TypeError, sqlite3.Error, pickle.UnpicklingError) as problem:
            raise IndexRefused(
                f"{folder} cannot be opened as a folder of Qdrant's local mode ({problem}): it is damaged, of another "
                "version of qdrant-client, or something else. Name another folder."
            ) from problem
        _OPEN[folder] = client
        hasten(client)
        return client


def hasten(client: QdrantClient) -> None:
    """Let its collections leave to the system when a point reaches the disk: waiting takes 15 ms a point.

    What was written outlives a kill of the process; if the machine itself stops, the collection is built again.
    """
    local: Any = client._client
    for collection in local.collections.values():
        collection.storage.storage.execute("PRAGMA synchronous=OFF")


def _check(folder: Path) -> None:
    """Look at what the client would unpickle: local mode keeps points pickled, and a folder may come from anybody.

    Raises:
        UnpicklingError: if it is more than points.
        OSError, ValueError, KeyError, TypeError, sqlite3.Error: if the folder is damaged.
    """
    meta = folder / "meta.json"
    names = json.loads(meta.read_text(encoding="utf-8"))["collections"] if meta.exists() else ()
    for path in filter(Path.exists, (folder / "collection" / name / "storage.sqlite" for name in names)):
        with closing(sqlite3.connect(path)) as database:
            made = {sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
            if other := [sql for sql in made if not sql.startswith("CREATE TABLE")]:  # a view may show others each time
                raise pickle.UnpicklingError(f"{path.name} holds {other[0]!r}, which is no table")
            for (point,) in database.execute("SELECT point FROM points") if made else ():
                _Points(io.BytesIO(point)).load()


class _Points(pickle.Unpickler):
    """Makes points and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of points.

        Raises:
            UnpicklingError: if the file asks for anything else.
        """
        from qdrant_client import models

        if module == "qdrant_client.http.models.models" and name in _HELD:
            return getattr(models, name)
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no point")


@atexit.register
def _close() -> None:
    """Close what is open: while Python ends, the client's own closing fails, and says so."""
    for client in list(_OPEN.values()):
        client.close()
