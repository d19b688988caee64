"""A Ray cluster of this machine alone, for the tests of a module, and the processes of its workers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from filelock import FileLock

OBJECTS = 100 * 2**20
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


@contextmanager
def surroundings(cache: Path) -> Iterator[None]:
    """Set what the processes of a cluster inherit: the folder of the replies of the LM, and where these files are."""
    before = dict(os.environ)
    os.environ |= {"QUESTREE_CACHE": str(cache), "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    paths = [str(Path(__file__).parent), *before.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _start(ray: Any) -> None:
    """Start one for two workers, one at a time on this machine; skip the tests where Ray itself cannot start."""
    problem = None
    with FileLock(Path(gettempdir()) / "questree-tests-ray.lock"):
        for _ in range(3):  # on a busy machine Ray's own processes may not find one another in time
            try:
                ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=OBJECTS, **QUIET)
                return
            except Exception as error:
                ray.shutdown()
                problem = error
    pytest.skip(f"Ray does not start here: {problem!r}")


@contextmanager
def cluster_of_two(cache: Path) -> Iterator[Any]:
    """Start one that has room for two workers; skip the tests where Ray is absent."""
    ray = pytest.importorskip("ray", reason="needs questree[cluster]")
    with surroundings(cache):
        _start(ray)
        try:
            yield ray
        finally:
            ray.shutdown()
