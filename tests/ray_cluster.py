"""A Ray cluster of this machine alone, for the tests of a module, and the processes of its workers."""

import os
import signal
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


@contextmanager
def cluster_of_two_nodes(cache: Path) -> Iterator[Any]:
    """Start one of two nodes, each with room for one worker; gives `ray.cluster_utils.Cluster`."""
    ray = pytest.importorskip("ray", reason="needs questree[cluster]")
    from ray.cluster_utils import Cluster

    with surroundings(cache):
        node = {"num_cpus": 1, "object_store_memory": OBJECTS}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        try:
            ray.init(cluster.address, **QUIET)
            cluster.more = lambda: cluster.add_node(**node)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


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
