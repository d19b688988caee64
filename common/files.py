"""Files that a kill leaves whole, and folders that one process writes at a time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from .errors import QuestreeError


@contextmanager
def alone_in(folder: Path, what: str) -> Iterator[None]:
    """Inside, no other process is in here with the same folder, which is made if need be.

    The lock is the process's: it ends with it, however that ends.

    Raises:
        QuestreeError: if another is, or the folder cannot be written.
    """
    lock = FileLock(folder / "lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
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


def write_atomically(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all; what a kill leaves beside it, the next writing takes away.

    Raises:
        QuestreeError: if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.unfinished")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise QuestreeError(f"Cannot write {path}: {error.strerror}; make room, or name another folder.") from error


def append_line(path: Path, line: str) -> None:
    """Add a line that is on the disk when this returns, or leave the file as it was.

    Raises:
        OSError: if it cannot be written.
    """
    rest = memoryview(f"{line}\n".encode())
    with path.open("ab", buffering=0) as file:
        whole = file.seek(0, os.SEEK_END)
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(whole)  # half a line would spoil the next one, which may be shorter and fit
            raise


class FileRecord(BaseModel):
    """A file as it was when the folder that it lies in was finished."""

    model_config = ConfigDict(frozen=True)

    bytes: int
    sha256: str


def file_hash(path: Path) -> str:
    """Compute the SHA-256 of a file's bytes, as hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
