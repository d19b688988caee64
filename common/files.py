"""Files and folders that a kill leaves whole, and folders that one process writes at a time.

A folder may be somebody else's: where a new file is to stand, a link or a pipe may stand. None is written through.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from filelock import FileLock, Timeout

from .errors import QuestreeError

T = TypeVar("T")

logger = logging.getLogger(__name__)

_READINGS = 20
"""Of a folder that is swapped each time; a swap spoils three of them at most."""


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
        lock.acquire()  # which follows no link
    except Timeout:
        raise QuestreeError(
            f"Another process is writing {what} in {folder}; wait for it, or name another folder."
        ) from None
    except OSError as error:
        raise QuestreeError(f"Cannot write {what} to {folder}: {error.strerror}; name another folder.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def in_turn(lock_file: Path, what: str) -> Iterator[None]:
    """Wait, and say so, while another process does the same; then let none begin while the block runs.

    Raises:
        QuestreeError: if the lock's folder cannot be written.
    """
    lock = FileLock(lock_file)
    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("Another process is %s: waiting until it has ended.", what)
        lock.acquire()
    except OSError as error:
        why = error.strerror or error
        raise QuestreeError(f"Nothing can be written to {lock_file.parent} ({why}): make it writable.") from error
    try:
        yield
    finally:
        lock.release()


def check_name(folder: Path) -> None:
    """Check that a folder has a name: it is made beside its place, and moved there when it is whole.

    Raises:
        QuestreeError: if it is the working folder, or the root.
    """
    if not folder.name:
        raise QuestreeError(f"{folder} cannot be replaced as a whole; name a folder in it.")


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


def how_to_write(error: OSError) -> str:
    """Return what helps where a file cannot be written."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files (ulimit -n), or ask fewer questions at a time (--concurrency)"
    return "make room, or the folder writable"


def cannot_write(path: Path, error: OSError) -> QuestreeError:
    """Return the error for a file that cannot be written."""
    return QuestreeError(f"Cannot write {path}: {error.strerror}; {how_to_write(error)}, or name another folder.")


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


def swap_folder(finished: Path, folder: Path, former: Path) -> None:
    """Move a finished folder to its place, and the one that was there, if any, to `former`.

    A kill between the two moves leaves nothing in the place; `restore_folder` puts that right.

    Raises:
        OSError: if that fails; the former folder is then in its place again.
    """
    if not folder.exists():
        os.replace(finished, folder)
        return
    os.replace(folder, former)
    try:
        os.replace(finished, folder)
    except OSError:
        os.replace(former, folder)
        raise


def restore_folder(folder: Path, former: Path) -> None:
    """Put the former folder back if a process was killed inside `swap_folder`."""
    if former.exists() and not folder.exists():
        os.replace(former, folder)


def read_unswapped(folder: Path, former: Callable[[], Path | None], read: Callable[[Path], T]) -> T:
    """Return what `read` makes of a folder, all of it from one version, though `swap_folder` may replace it meanwhile.

    What was read during a swap is dropped and read again. Between the two moves of a swap, and after a kill there, the
    former folder is read.

    Args:
        folder: that may be swapped.
        former: gives where the swap puts the folder that was there.
        read: is given the folder to read. It must open all files that it needs before it returns.

    Raises:
        QuestreeError: if it was swapped during every reading.
        Exception: that `read` raises.
    """
    for _ in range(_READINGS):
        place, version = _version(folder, former)
        try:
            found = read(place)
        except Exception:
            if _version(folder, former) == (place, version):
                raise
        else:
            if _version(folder, former) == (place, version):
                return found
    raise QuestreeError(f"{folder} is replaced faster than it can be read; try again when that has ended.")


def _version(folder: Path, former: Callable[[], Path | None]) -> tuple[Path, tuple[int, int, int] | None]:
    """Return which of the two folders is there, and what tells it from any other that stood in its place."""
    for candidate in (lambda: folder, former, lambda: folder):  # once more: the swap may end between the first two
        with suppress(OSError, ValueError):  # a ValueError: a name that no file can have
            if place := candidate():
                found = place.stat()
                return place, (found.st_dev, found.st_ino, found.st_mtime_ns)
    return folder, None


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, as hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
