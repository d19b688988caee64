"""The LM's replies on disk: what was answered once is not paid for again, whatever ends the process."""

from __future__ import annotations

import hashlib
import logging
import pickle
from pathlib import Path
from typing import Any

import dspy
from diskcache import FanoutCache
from diskcache.core import MODE_PICKLE
from dspy.clients.disk_serialization import DeserializationError, restricted_disk

from ..common.caches import cache_folder
from ..common.errors import QuestreeError


def use_lm_cache(address: str | None = None) -> None:
    """Keep the LM's replies on disk, each before it is made use of, in a private folder for each server address.

    DSPy's cache key does not tell servers apart, so that one server would be given another's answers; what it reads
    it would unpickle without restriction (CVE-2025-69872); and replies as another DSPy keeps them may not be what
    this one takes them for, so each minor version has a folder. A reply that was changed on disk is not used.

    Args:
        address: of the LM's server; None where the model's name says it.

    Raises:
        QuestreeError: if the folder cannot be written, or holds something else.
    """
    folder = _folder(address, ".".join(dspy.__version__.split(".")[:2]))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        dspy.configure_cache(disk_cache_dir=str(folder), disk_size_limit_bytes=SIZE, restrict_pickle=True)
        dspy.cache.disk_cache.close()
        dspy.cache.disk_cache = ReplyStore(folder)
    except Exception as error:  # of a damaged database, whatever comes of it
        raise QuestreeError(
            f"The LM's replies cannot be kept in {folder}: {getattr(error, 'strerror', None) or error}. Make room or "
            "the folder writable, delete it if it is damaged, or name another place: QUESTREE_CACHE."
        ) from error


def _folder(address: str | None, version: str) -> Path:
    server = hashlib.sha256((address or "").encode()).hexdigest()[:12]
    return cache_folder() / "lm" / f"dspy-{version}-sealed" / server


SIZE = 10 * 2**30  # bytes; beyond it the oldest replies go

_WHOLE_IN_ROW = 2**30  # bytes up to which a reply lies in the database, and not in a file of its own
_DIGEST = 32
_DISK = restricted_disk(frozenset())  # DSPy's: unpickles nothing but data

logger = logging.getLogger(__name__)


class ReplyStore(FanoutCache):
    """What DSPy keeps its replies in.

    The SHA-256 is of key and reply together: an index page that was changed can lead to another question's reply.
    DSPy takes an error for a failed call, and keeps to itself that a reply could not be kept: here it is said, once.

    Args:
        folder: made if it is not there.

    Raises:
        OSError, sqlite3.Error: the folder cannot be used; from a damaged one also others, as it happens.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._told = folder, set[str]()
        self._pickled = _DISK(str(folder))
        super().__init__(
            str(folder), shards=16, timeout=10, size_limit=SIZE, disk=_DISK, disk_min_file_size=_WHOLE_IN_ROW
        )

    def set(self, key: str, value: Any, *more: Any, **how: Any) -> bool:
        """Keep a reply."""
        reply = pickle.dumps(value)
        try:
            return bool(super().set(key, _digest(key, reply) + reply, *more, **how))
        except Exception as error:
            self._tell(
                f"A reply of the LM could not be kept in {self._folder}: {error}. It serves now; if this run is "
                "interrupted, it is asked, and paid, for again."
            )
            raise

    def get(self, key: str, default: Any = None, *more: Any, **how: Any) -> Any:
        """The reply to this key; the default where there is none, or not as it was kept."""
        try:
            kept = super().get(key, None, *more, **how)
            if kept is None:
                return default
            if not isinstance(kept, bytes) or kept[:_DIGEST] != _digest(key, kept[_DIGEST:]):
                raise DeserializationError("it is not as it was kept")
            return self._pickled.fetch(MODE_PICKLE, None, kept[_DIGEST:], False)
        except Exception as error:  # whatever a damaged database leads to
            self._tell(f"A kept reply of the LM in {self._folder} is not used, and is asked for again: {error}.")
            return default

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            logger.warning(what)


def _digest(key: str, reply: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + reply).digest()
