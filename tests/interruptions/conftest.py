"""A run's parts, and disks and folders that cannot be written."""

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dspy
import pytest
from reliability.small_world import small_world

from questree.optimize import Examples
from questree.programs import Program, SearChain
from questree.retrieval import Retriever


@dataclass(frozen=True)
class Small:
    """A few questions and a program that a simulated LM answers them by."""

    questions: list[dspy.Example]
    index: Retriever

    def program(self) -> Program:
        return SearChain(self.index)

    def examples(self) -> Examples:
        return Examples(self.questions[4:12], self.questions[:4], task="mini")


@pytest.fixture(scope="session")
def _world():
    return small_world()


@pytest.fixture(scope="session")
def _simulated(_world) -> Callable[[], AbstractContextManager[Small]]:
    @contextmanager
    def simulated() -> Iterator[Small]:
        questions, index, engine = _world
        with dspy.context(lm=dspy.LM("simulated/small", engine=engine, cache=False, num_retries=0), adapter=None):
            yield Small(questions, index)

    return simulated


@pytest.fixture
def small(_simulated) -> Iterator[Small]:
    with _simulated() as world:
        yield world


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
