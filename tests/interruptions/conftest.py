"""The bundled task, and disks and folders that cannot be written."""

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import mini as mini


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[None]]:
    """Inside, no file grows beyond so many bytes: writes fail in the middle, for whoever runs this."""

    @contextmanager
    def filled(room: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return filled


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], AbstractContextManager[Path]]]:
    """Inside, a copy of a folder that may be read and not written; also by root, who is somebody else for that time."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)

    @contextmanager
    def copied(folder: Path) -> Iterator[Path]:
        copy = shutil.copytree(folder, place / "copy")
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        somebody = os.geteuid()
        if somebody == 0:
            os.seteuid(65534)
        try:
            yield copy
        finally:
            os.seteuid(somebody)

    yield copied
    for path in place.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(place)
