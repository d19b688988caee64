"""Files and folders that a kill leaves whole, folders that one process writes at a time, and the folder of caches.

A folder may be somebody else's: where a new file is to stand, a link or a pipe may stand. None is written through.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from .errors import QuestreeError

logger = logging.getLogger(__name__)


@contextmanager
def alone_in(folder: Path, what: str) -> Iterator[None]:
    """Keep other processes out of a folder while the block runs; the folder is made if need be.

    The lock belongs to the process and ends with it, however that ends.

    Raises:
        QuestreeError: if another process is writing there, or the folder cannot be written.
    """
    lock = FileLock(folder / "lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = lock.acquire()  # which follows no link
    except Timeout:
        raise QuestreeError(
            f"Another process is writing {what} in {folder}; wait for it, or name another folder."
        ) from None
    except OSError as error:
        raise QuestreeError(f"Cannot write {what} to {folder}: {error.strerror}; name another folder.") from error
    with held:
        yield


@contextmanager
def in_turn(lock_file: Path, what: str) -> Iterator[None]:
    """Wait, and say so, while another process does the same; then let none begin while the block runs.

    Raises:
        QuestreeError: if the lock's folder cannot be written.
    """
    lock = FileLock(lock_file)
    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        held = lock.acquire(timeout=0)
    except Timeout:
        logger.warning("Another process is %s: waiting until it has ended.", what)
        held = lock.acquire()
    except OSError as error:
        why = error.strerror or error
        raise QuestreeError(f"Nothing can be written to {lock_file.parent} ({why}): make it writable.") from error
    with held:
        yield


def new_file(path: Path) -> BinaryIO:
    """Open a new file for writing. A file, link or pipe that stands in its place is removed first.

    Raises:
        OSError: if it cannot be made.
    """
    path.unlink(missing_ok=True)
    return path.open("xb")  # follows no link


def make_folder(folder: Path) -> None:
    """Make a folder inside another one, if it is not there.

    Raises:
        QuestreeError: if it is a link.
        OSError: if it cannot be made.
    """
    refuse_link(folder)
    folder.mkdir(exist_ok=True)


def refuse_link(folder: Path) -> None:
    """Check that a folder inside another one is no link: what is written to it would land elsewhere.

    Raises:
        QuestreeError: if it is one.
    """
    if folder.is_symlink():
        raise QuestreeError(f"{folder} is a link, and nothing is written through it; remove the link.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a new, empty file beside `path`, and put it in its place when the block ends well.

    So `path` is there whole or not at all. What a kill leaves beside it, the next writing takes away.

    Raises:
        OSError: if the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    new_file(unfinished).close()
    try:
        yield unfinished
        put_in_place(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def put_in_place(finished: Path, path: Path) -> None:
    """Move a finished file to its place once its bytes are on the disk.

    Raises:
        OSError: if that fails.
    """
    with finished.open("r+b") as file:
        os.fsync(file.fileno())
    os.replace(finished, path)


def cannot_write(path: Path, error: OSError) -> QuestreeError:
    """Return the error for a file that cannot be written."""
    remedy = "make room, or the folder writable"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        remedy = "allow more open files (ulimit -n), or ask fewer questions at a time (--concurrency)"
    return QuestreeError(f"Cannot write {path}: {error.strerror}; {remedy}, or name another folder.")


def write_atomically(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all.

    Raises:
        QuestreeError: if it cannot be written.
    """
    try:
        with replacing(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, as hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder that ``QUESTREE_CACHE`` names, or the platform's cache folder.

    Raises:
        QuestreeError: no folder is named, and the user has no home.
    """
    if given := os.environ.get("QUESTREE_CACHE"):
        return Path(given).expanduser()
    try:
        return _platforms()
    except RuntimeError:
        raise QuestreeError("There is no home folder here; name a folder for caches: QUESTREE_CACHE.") from None


def _platforms() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "questree"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "questree" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "questree"
