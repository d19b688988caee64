"""The construction of an index in a folder: visible, locked, kept if it is interrupted, moved when it is done."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import QuestreeError
from ...common.files import restore_folder, swap_folder
from ...common.text import readable_size
from .contents import NAME, OFFSETS, PASSAGES

LOCK = ".questree-building"
"""The lock of the process that builds. It also marks the folder as one that may be emptied."""


@dataclass(frozen=True)
class Construction:
    """An index under construction.

    Attributes:
        folder: ``OUT.building``.
        out: where the index will be.
        discarded: ``OUT.discarded``: what is moved there is deleted in the end.
    """

    folder: Path
    out: Path
    discarded: Path

    def keep_only(self, work: str) -> None:
        """Remove what an interrupted build left, except the passages and the named folder of finished work."""
        for path in self.folder.iterdir():
            if path.name not in (LOCK, PASSAGES, OFFSETS, work):
                _remove(path)

    def discard(self, name: str) -> None:
        """Set aside what the finished index does not need; it is deleted when the index is in place."""
        if (self.folder / name).exists():
            self.discarded.mkdir(exist_ok=True)
            os.replace(self.folder / name, self.discarded / name)

    def kept(self) -> str:
        """Return what an interrupted build leaves, in words; empty if that is nothing."""
        sizes = [path.stat().st_size for path in self.folder.glob("*/*.f16")]
        if not sizes:
            return ""
        return (
            f"What is encoded ({readable_size(sum(sizes))}) is kept in {self.folder}: the same command goes on from "
            "there; delete the folder if you do not want it."
        )


def building_folder(out: Path) -> Path:
    """Return where an index is while it is built."""
    return out.with_name(f"{out.name}.building")


@contextmanager
def building(out: Path, *, overwrite: bool = False) -> Iterator[Construction]:
    """Give a folder beside ``out``, and put it in the place of ``out`` when the block ends well.

    If it ends otherwise, the folder stays if it holds work that the next build of ``out`` can use.

    Raises:
        QuestreeError: if ``out`` is taken (only an index is ever overwritten), another process is building it, or the
            disk is full.
        KeyboardInterrupt: if the user stopped it, with a sentence on how to go on.
    """
    from filelock import FileLock, Timeout

    work = Construction(building_folder(out), out, out.with_name(f"{out.name}.discarded"))
    _check_target(out, overwrite=overwrite)
    _make(work.folder)
    lock = FileLock(work.folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise QuestreeError(f"Another process is building {out} (in {work.folder}). Wait for it, or end it.") from None
    try:
        _restore(work)
        yield work
        work.folder.chmod(0o777 & ~_umask())
        _move(work)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(_leave(work) or "nothing is left of it; run the same command to begin again") from stop
    except Exception as problem:
        left = _leave(work)
        if _disk_is_full(problem, out.parent):
            raise QuestreeError(
                f"The disk at {out.parent} is full. Free some space, or choose another --out. "
                f"{left or 'Nothing was left there.'}"
            ) from problem
        if left and isinstance(problem, QuestreeError):
            raise type(problem)(f"{problem} {left}") from problem
        raise
    finally:
        lock.release()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = any(folder.iterdir()) and not (folder / LOCK).exists()
    except OSError as problem:
        raise QuestreeError(f"No folder can be made at {folder}: {problem.strerror or problem}.") from problem
    if foreign:
        raise QuestreeError(
            f"{folder} exists and is not of a build of questree's. Move it away, or choose another --out."
        )


def _leave(work: Construction) -> str:
    """Keep what the next build can use and say so, or remove the folder."""
    if not (kept := work.kept()):
        shutil.rmtree(work.folder, ignore_errors=True)
    return kept


def _restore(work: Construction) -> None:
    """Put right what a build left that was killed while it moved folders."""
    restore_folder(work.out, work.discarded / work.out.name)
    shutil.rmtree(work.discarded, ignore_errors=True)


def _move(work: Construction) -> None:
    """Put the new index in place, then delete the former one and what is discarded."""
    (work.folder / LOCK).unlink()
    if work.out.exists():
        work.discarded.mkdir(exist_ok=True)
    swap_folder(work.folder, work.out, work.discarded / work.out.name)
    shutil.rmtree(work.discarded, ignore_errors=True)


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


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
