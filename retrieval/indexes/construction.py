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

from ...common.errors import IndexRefused, QuestreeError
from ...common.files import check_name, make_folder, new_file, restore_folder, swap_folder
from ...common.text import readable_size
from .chunks import ROWS
from .contents import NAME, OFFSETS, PASSAGES, former_folder, manifest_in

MARK = ".questree-building"
"""The file that marks a folder as one that may be emptied."""


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
            if path.name not in (MARK, PASSAGES, OFFSETS, work):
                _remove(path)

    def discard(self, name: str) -> None:
        """Set aside what the finished index does not need; it is deleted when the index is in place."""
        if (self.folder / name).exists():
            _make(self.discarded)
            os.replace(self.folder / name, self.discarded / name)

    def kept(self) -> str:
        """Return what an interrupted build leaves, in words; empty if that is nothing."""
        sizes = [path.stat().st_size for path in self.folder.glob("*/*") if path.suffix in ROWS.values()]
        if not sizes:
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

    If it ends otherwise, the folder stays if it holds work that the next build of ``out`` can use.

    Raises:
        QuestreeError: if ``out`` is taken (only an index is ever overwritten), another process is building it, or the
            disk is full.
        KeyboardInterrupt: if the user stopped it, with a sentence on how to go on.
    """
    check_name(out)
    work = Construction(out.with_name(f"{out.name}.building"), out, former_folder(out).parent)
    with _alone(out):
        _restore(work)
        _check_target(out, overwrite=overwrite)
        _make(work.folder)
        try:
            yield work
            work.folder.chmod(0o777 & ~_umask())
            _move(work)
        except KeyboardInterrupt as stop:
            how = _leave(work) or "nothing is left of it; run the same command to begin again"
            raise KeyboardInterrupt(how) from stop
        except Exception as problem:
            full = _disk_is_full(problem, out.parent)  # asked before what fills it is removed
            left = _leave(work)
            if full:
                raise QuestreeError(
                    f"The disk at {out.parent} is full. Free some space, or choose another --out. "
                    f"{left or 'Nothing was left there.'}"
                ) from problem
            if isinstance(problem, OSError):
                why = problem.strerror or problem
                raise QuestreeError(f"The index at {out} cannot be written: {why}. {left}".rstrip()) from problem
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
        foreign = any(folder.iterdir()) and not (folder / MARK).exists()
        if not foreign:
            new_file(folder / MARK).close()
    except OSError as problem:
        raise QuestreeError(f"No folder can be made at {folder}: {problem.strerror or problem}.") from problem
    if foreign:
        raise QuestreeError(
            f"{folder} exists and is not of a build of questree's. Move it away, or choose another --out."
        )


def _leave(work: Construction) -> str:
    """Keep what the next build can use and say so, or remove the folder."""
    if not (kept := work.kept()):
        _delete(work.folder)
    return kept


def _restore(work: Construction) -> None:
    """Put right what a build left that was killed while it moved folders."""
    restore_folder(work.out, former_folder(work.out))
    _delete(work.discarded)


def _move(work: Construction) -> None:
    """Put the new index in place, then delete the former one and what is discarded."""
    if work.out.exists():
        _make(work.discarded)
    swap_folder(work.folder, work.out, former_folder(work.out))
    (work.out / MARK).unlink()
    _delete(work.discarded)


def _delete(folder: Path) -> None:
    """Remove a folder if it is empty or has our mark; what cannot be removed is left to the next build."""
    with suppress(OSError):
        if (folder / MARK).exists():
            for path in sorted(folder.iterdir(), key=lambda path: path.name == MARK):
                _remove(path)  # the mark last: after a kill, what is left must not pass for the user's
        folder.rmdir()


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
            f"{out} already holds an index{_described(out)}. Choose another --out, overwrite it (--overwrite), or add "
            "to it (--add)."
        )


def _described(index: Path) -> str:
    """Return what an index holds, for whoever ran the command again that had built it; nothing if it is damaged."""
    with suppress(IndexRefused):
        held = manifest_in(index)
        return f", whole: {held.corpus.passages:,} passages of {held.corpus.name}, {held.kind}"
    return ""


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
