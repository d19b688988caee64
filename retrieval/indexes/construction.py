"""The construction of an index in a folder: visible, locked, kept if it is interrupted, moved when it is done."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ...common.errors import QuestreeError
from ...common.files import check_name, make_folder, new_file, restore_folder, swap_folder
from ...common.text import readable_size
from .chunks import ROWS
from .contents import NAME, OFFSETS, PASSAGES, former_folder

MARK = ".questree-building"
"""The file that marks a folder as one that may be emptied."""


@dataclass(frozen=True)
class Construction:
    """An index under construction.

    Attributes:
        folder: ``OUT.building``.
        out: where the index will be.
    """

    folder: Path
    out: Path

    def keep_only(self, work: str) -> None:
        """Remove what an interrupted build left, except the passages and the named folder of finished work."""
        for path in self.folder.iterdir():
            if path.name not in (MARK, PASSAGES, OFFSETS, work):
                self.remove(path.name)

    def remove(self, name: str) -> None:
        """Remove a file or a folder from the folder, if it is there."""
        path = self.folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def leave(self) -> str:
        """Keep what the next build can use and say so, or remove the folder and return nothing."""
        sizes = [path.stat().st_size for path in self.folder.glob("*/*") if path.suffix in ROWS.values()]
        if not sizes:
            with suppress(OSError):  # moved first: a half of it, after a kill, must not pass for the user's
                os.replace(self.folder, former_folder(self.out))
            shutil.rmtree(former_folder(self.out), ignore_errors=True)
            return ""
        return (
            f"What is encoded ({readable_size(sum(sizes))}) is kept in {self.folder}: the same command goes on from "
            "there; delete the folder if you do not want it."
        )


def lock_file(out: Path) -> Path:
    """Return the lock of the process that builds at ``out``. It stands beside the folders, which are moved."""
    return out.with_name(f".{out.name}.questree-lock")


@contextmanager
def building(out: Path, *, overwrite: bool = False) -> Iterator[Construction]:
    """Give a folder beside ``out``, and put it in the place of ``out`` when the block ends well.

    If it ends otherwise, the folder stays if it holds work that the next build of ``out`` can use. Only an index is
    ever overwritten.

    Raises:
        KeyboardInterrupt: if the user stopped it, with a sentence on how to go on.
    """
    check_name(out)
    work, former = Construction(out.with_name(f"{out.name}.building"), out), former_folder(out)
    with _alone(out):
        restore_folder(out, former)  # of a process that was killed while it moved folders
        shutil.rmtree(former, ignore_errors=True)
        _check_target(out, overwrite=overwrite)
        _make(work.folder)
        try:
            yield work
            swap_folder(work.folder, out, former)
            (out / MARK).unlink()
            shutil.rmtree(former, ignore_errors=True)
        except KeyboardInterrupt as stop:
            how = work.leave() or "nothing is left of it; run the same command to begin again"
            raise KeyboardInterrupt(how) from stop
        except Exception as problem:
            full = _disk_is_full(problem, out.parent)  # asked before what fills it is removed
            left = work.leave()
            if full:
                told = f"The disk at {out.parent} is full. Free some space, or choose another --out."
                raise QuestreeError(f"{told} {left or 'Nothing was left there.'}") from problem
            if isinstance(problem, OSError):
                told = f"The index at {out} cannot be written: {problem.strerror or problem}."
                raise QuestreeError(f"{told} {left}".rstrip()) from problem
            if left and isinstance(problem, QuestreeError):
                raise type(problem)(f"{problem} {left}") from problem
            raise


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other processes from building at ``out`` while the block runs."""
    lock = FileLock(lock_file(out), timeout=0)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        if not lock_file(out).exists():  # a folder in which no file can be made, as in /proc, looks like one in use
            raise QuestreeError(f"No index can be made at {out}: {out.parent} takes no files.") from None
        raise QuestreeError(f"Another process is building {out}. Wait for it, or end it.") from None
    except OSError as problem:
        raise QuestreeError(f"No index can be made at {out}: {problem.strerror or problem}.") from problem
    try:
        yield
    finally:
        with suppress(OSError):
            lock_file(out).unlink()  # while it is held: filelock gives nobody a lock on a file that is gone
        lock.release()


def _make(folder: Path) -> None:
    """Make a folder with our mark, or refuse one that is there without it."""
    try:
        make_folder(folder)
        if any(folder.iterdir()) and not (folder / MARK).exists():
            raise QuestreeError(
                f"{folder} exists and is not of a build of questree's. Move it away, or choose another --out."
            )
        new_file(folder / MARK).close()
    except OSError as problem:
        raise QuestreeError(f"No folder can be made at {folder}: {problem.strerror or problem}.") from problem


def _disk_is_full(problem: Exception, folder: Path) -> bool:
    """Tell whether the disk is full, by the error or by the disk itself: numpy and torch raise other errors."""
    cause = problem.__cause__ if isinstance(problem, QuestreeError) else problem
    if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return shutil.disk_usage(folder).free < 1 << 20


def _check_target(out: Path, *, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / NAME).is_file():
        raise QuestreeError(f"{out} exists and is no index of questree's: it is left as it is. Choose another --out.")
    if not overwrite:
        raise QuestreeError(
            f"{out} already holds an index. Choose another --out, overwrite it (--overwrite), or add to it (--add)."
        )
