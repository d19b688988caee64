"""A Ray cluster of this machine alone, for the tests of a module, and the processes of its workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START: dict[str, Any] = {
    "include_dashboard": False,
    "object_store_memory": 100 * 2**20,
    "log_to_driver": False,
    "logging_level": "ERROR",
}


@contextmanager
def cluster_of_two(cache: Path) -> Iterator[Any]:
    """Start one of two workers, which keep replies of the LM in this folder."""
    import ray

    before = dict(os.environ)
    os.environ |= {"QUESTREE_CACHE": str(cache), "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # for encoders of the tests
    try:
        ray.init("local", num_cpus=2, **START)
        yield ray
    finally:
        ray.shutdown()
        os.environ.clear()
        os.environ.update(before)


def worker_processes() -> list[int]:
    """The processes of our workers that this process, or one that it started, has started."""
    parents = {int(stat.parent.name): int(_rest(stat).split()[1]) for stat in Path("/proc").glob("[0-9]*/stat")}
    return sorted(one for one in parents if _is_worker(one) and os.getpid() in _above(one, parents))


def kill_a_worker() -> int:
    """Kill one with SIGKILL; return which."""
    killed = worker_processes()[0]
    os.kill(killed, signal.SIGKILL)
    return killed


def _rest(stat: Path) -> str:
    try:
        return stat.read_text().rpartition(")")[2]
    except OSError:  # it has ended
        return "- 0"


def _is_worker(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::_Worker")
    except OSError:
        return False


def _above(process: int, parents: dict[int, int]) -> Iterator[int]:
    while process in parents:
        process = parents[process]
        yield process
