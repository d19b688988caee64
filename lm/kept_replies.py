"""The LM's replies on disk: a reply is not paid for twice, even if the process is killed."""

from __future__ import annotations

import hashlib
import logging
import pickle
import sqlite3
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import dspy
from diskcache.core import MODE_PICKLE
from dspy.clients import Cache
from dspy.clients.disk_serialization import DeserializationError, restricted_disk

from ..common.errors import QuestreeError
from ..common.files import cache_folder
from ..common.forks import renew_in_forks
from ..common.secrets import holds_secret
from .adapters import ReplySchema
from .scope import scope

logger = logging.getLogger(__name__)


def use_lm_cache(address: str | None = None) -> None:
    """Keep the LM's replies on disk, each before it is used, in a private folder for each server address.

    DSPy's cache has three faults. Its key does not tell servers apart: one server's answers would be used for
    another. It would unpickle anything that it reads (CVE-2025-69872). And another version of DSPy may
    keep replies in another form: each minor version has a folder of its own. A reply that was changed on disk is not
    used.

    Args:
        address: of the LM's server; None if the model's name implies it.

    Raises:
        QuestreeError: if the folder cannot be written, or holds something else.
    """
    version, server = ".".join(dspy.__version__.split(".")[:2]), hashlib.sha256((address or "").encode()).hexdigest()
    folder = cache_folder() / "lm" / f"dspy-{version}" / server[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = ReplyStore(folder, address)
        cache = _ReplyCache(enable_disk_cache=False, enable_memory_cache=True, disk_cache_dir=str(folder))
        cache.disk_cache, cache.enable_disk_cache = store, True  # DSPy's own store would be opened for nothing
        dspy.cache = cache
    except Exception as error:  # a damaged database may raise anything
        raise QuestreeError(
            f"The LM's replies cannot be kept in {folder}: {getattr(error, 'strerror', None) or error}. Make room or "
            "the folder writable, delete it if it is damaged, or name another place: QUESTREE_CACHE."
        ) from error


def watch_cache() -> None:
    """Let DSPy's cache report whether it has a reply, and use our keys for calls; a user's own cache keeps its keys.

    DSPy looks for replies only in `dspy.cache`, by a key that it makes; another cache is set there, as its
    documentation says.
    """
    cache = dspy.cache
    if not isinstance(cache, _Watched):
        watched: Any = _ReplyCache if type(cache) is Cache else type("Watched", (_Watched, type(cache)), {})
        dspy.cache = watched.__new__(watched)
        vars(dspy.cache).update(vars(cache))


class _Watched:
    """A cache that tells the meter of the running call whether it had the reply."""

    def get(self, *request: Any, **how: Any) -> Any:
        """Return the kept reply; None if there is none."""
        found = super().get(*request, **how)  # type: ignore[misc]
        if (meter := scope().meter) is not None:
            meter.note_lookup(found is not None)
        return found


class _ReplyCache(_Watched, Cache):
    """DSPy's cache, with our keys for the requests of programs.

    A kept reply is used with and without an event loop, with and without our schema, but only for the server that gave
    it. DSPy has another key for each of these forms, though the replies are the same. Its keys do not tell servers
    apart. The folders of `use_lm_cache` do, and our keys name any server that is not the folder's own.
    """

    def cache_key(self, request: dict[str, Any], ignored_args_for_cache_key: list[str] | None = None) -> str:
        """Return the key of a reply."""
        server, store = scope().server, self.disk_cache
        if server is not None:
            kind = str(request.get("_fn_identifier")).removesuffix(".async").replace("alitellm_", "litellm_")
            request = {**request, "_fn_identifier": kind}
        if isinstance(request.get("response_format"), ReplySchema):
            request = {name: value for name, value in request.items() if name != "response_format"}
        if server and not (isinstance(store, ReplyStore) and server == store.address):
            request["questree_server"] = hashlib.sha256(server.encode()).hexdigest()
        return str(super().cache_key(request, ignored_args_for_cache_key))


_DISK = restricted_disk(frozenset())  # DSPy's class, which unpickles only data
_DIGEST = 32  # bytes


class ReplyStore:
    """The database that DSPy keeps its replies in.

    Each reply is stored with the SHA-256 of key and reply together: a changed index page could lead to the reply to
    another question. DSPy takes an error of the store for a failed call, and does not report that a reply could not
    be kept: this store reports it, once. All threads share one connection: a few hundred requests at a time would use
    up the process's descriptors.

    Args:
        folder: the folder of the database.
        address: of the server whose replies it holds; replies of other servers have an address in their keys.

    Raises:
        OSError, sqlite3.Error: if the folder cannot be used.
    """

    def __init__(self, folder: Path, address: str | None = None) -> None:
        self._folder, self.address = folder, address
        self._pickled = _DISK(str(folder))
        self._opened: list[sqlite3.Connection] = []
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        """Open the database. Leave a connection of another process alone: a thread of that process may hold it."""
        self._alone = threading.Lock()
        path = self._folder / "replies.db"
        self._opened.append(sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False))
        for setting in ("journal_mode = WAL", "synchronous = NORMAL"):  # a kill loses nothing
            self._do(f"PRAGMA {setting}")
        self._do("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply BLOB NOT NULL)")

    def set(self, key: str, value: Any) -> bool:
        """Keep a reply, unless it repeats a secret; return whether it was kept."""
        reply = pickle.dumps(value)
        if holds_secret(reply):
            return False
        try:
            self._do("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", key, _digest(key, reply) + reply)
        except sqlite3.Error as error:
            _warn_once(
                f"A reply of the LM could not be kept in {self._folder}: {error}. It serves now; if this run is "
                "interrupted, it is asked, and paid, for again."
            )
            raise
        return True

    def get(self, key: str) -> Any:
        """Return the reply to this key; None if there is none, or if it was changed."""
        try:
            found = self._do("SELECT reply FROM replies WHERE key = ?", key)
            if found is None:
                return None
            kept = found[0]
            if not isinstance(kept, bytes) or kept[:_DIGEST] != _digest(key, kept[_DIGEST:]):
                raise DeserializationError("it is not as it was kept")
            return self._pickled.fetch(MODE_PICKLE, None, kept[_DIGEST:], False)
        except (sqlite3.Error, DeserializationError) as error:
            _warn_once(f"A kept reply of the LM in {self._folder} is not used, and is asked for again: {error}.")
            return None

    def close(self) -> None:
        """Close the database."""
        with self._alone:
            self._opened[-1].close()

    def _do(self, statement: str, *given: Any) -> tuple[Any, ...] | None:
        with self._alone:
            row: tuple[Any, ...] | None = self._opened[-1].execute(statement, given).fetchone()
        return row


@lru_cache
def _warn_once(what: str) -> None:
    logger.warning(what)


def _digest(key: str, reply: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + reply).digest()
