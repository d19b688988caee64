"""The construction of an index: a new version in its folder, which is kept if it is interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from ...common.errors import QuestreeError
from ...common.files import alone_in, make_folder, new_file
from .chunks import ROWS
from .contents import NAME, OFFSETS, PASSAGES, held_version

LOCK = "lock"
MARK = ".questree-building"
"""The file that marks a folder as one that may be emptied."""


@dataclass(frozen=True)
class Construction:
    """An index under construction.

    Attributes:
        folder: ``OUT/version-…``, the new version.
        out: the folder of the index.
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
        if held_version(self.out) == self.folder:
            return "It is finished."
        sizes = [path.stat().st_size for path in self.folder.glob("*/*") if path.suffix == ROWS]
        if not sizes:
            shutil.rmtree(self.folder, ignore_errors=True)
            return ""
        return (
            f"What is encoded ({decimal(sum(sizes))}) is kept in {self.folder}: the same command goes on from "
            "there; delete the folder if you do not want it."
        )


@contextmanager
def building(out: Path, *, overwrite: bool = False) -> Iterator[Construction]:
    """Give a folder for a new version of the index at ``out``, which the block finishes by `seal`.

    If it ends otherwise, the folder stays if it holds work that the next build of ``out`` can use. Only an index is
    ever overwritten.

    Raises:
        KeyboardInterrupt: if the user stopped it, with a sentence on how to go on.
    """
    _check_target(out)
    with _alone(out):
        if (out / NAME).is_file() and not overwrite:
            raise QuestreeError(
                f"{out} already holds an index. Choose another --out, overwrite it (--overwrite), or add to it (--add)."
            )
        work = Construction(_next_version(out), out)
        try:
            make_folder(work.folder)
            if not (work.folder / MARK).exists():
                new_file(work.folder / MARK).close()
            yield work
            (work.folder / MARK).unlink()
            for former in set(_versions(out)) - {work.folder}:
                shutil.rmtree(former, ignore_errors=True)
        except KeyboardInterrupt as stop:
            how = work.leave() or "nothing is left of it; run the same command to begin again"
            raise KeyboardInterrupt(how) from stop
        except Exception as problem:
            full = shutil.disk_usage(out).free < 1 << 20  # numpy and torch say it in words of their own; asked first
            left = work.leave()
            if full or isinstance(problem, OSError):
                why = "the disk is full" if full else getattr(problem, "strerror", "") or problem
                told = f"The index at {out} cannot be written: {why}. Make room, or choose another --out."
                raise QuestreeError(f"{told} {left}".rstrip()) from problem
            if left and isinstance(problem, QuestreeError):
                raise type(problem)(f"{problem} {left}") from problem
            raise


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other processes from building at ``out`` while the block runs, and leave no folder with nothing in it."""
    with alone_in(out, "an index"):
        try:
            yield
        finally:
            with suppress(OSError):  # while it is held: filelock gives nobody a lock on a file that is gone
                (out / LOCK).unlink()
                out.rmdir()


def _check_target(out: Path) -> None:
    """Refuse a folder that holds something else than an index or what a build left."""
    ours = (LOCK, f".{NAME}.unfinished")  # the latter of a process that was killed as it wrote the manifest
    others = [path for path in out.glob("*") if path.name not in ours and not (path / MARK).exists()]
    if out.is_file() or (any(map(_holds_something, others)) and not (out / NAME).is_file()):
        raise QuestreeError(f"{out} exists and is no index of questree's: it is left as it is. Choose another --out.")


def _holds_something(path: Path) -> bool:
    return not path.is_dir() or any(path.iterdir())  # a killed process may leave an empty folder


def _versions(out: Path) -> list[Path]:
    return [path for path in out.glob("version-*") if path.name[8:].isdecimal()]


def _next_version(out: Path) -> Path:
    """Return the folder in which a build goes on that was interrupted, or that of a new version."""
    held = held_version(out)
    if held is not None:
        (held / MARK).unlink(missing_ok=True)  # of a process that was killed when it had finished
    begun = [path for path in _versions(out) if (path / MARK).exists()]
    return begun[0] if begun else out / f"version-{1 + max((int(path.name[8:]) for path in _versions(out)), default=0)}"
