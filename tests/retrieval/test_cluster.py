"""The workers of a cluster as a run knows them: handed one job for each place, replaced if they are lost."""

import socket
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from questree.common.errors import QuestreeError
from questree.common.manifests import installed_versions
from questree.retrieval.indexes import cluster
from questree.retrieval.indexes.cluster import ClusterError, Workers, connected


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class Remote:
    """A method of an actor: its outcome is there at once."""

    def __init__(self, method):
        self.method = method

    def remote(self, *given):
        outcome = Future()
        try:
            outcome.set_result(self.method(*given))
        except Exception as error:
            outcome.set_exception(error)
        return SimpleNamespace(future=lambda: outcome)

    def options(self, **how):
        return self


class Actor:
    """Says what it is told to say when it is ready, and does jobs by a function."""

    def __init__(self, do=lambda job: ("", job.encode()), problem="", versions=None, ready=None):
        said = (problem, installed_versions(cluster._SAME) if versions is None else versions)
        self.ready, self.do = Remote(ready or (lambda: said)), Remote(do)


class Ray:
    """What `Workers` takes of Ray."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self):
        self.killed = []

    def kill(self, actor):
        self.killed.append(actor)


def workers(*actors, ray=None):
    return Workers(ray or Ray(), actors)


def raising(error):
    def fail(*job):
        raise error

    return fail


def never_ready():
    silent = Actor()
    silent.ready.remote = lambda: SimpleNamespace(future=Future)
    return silent


def test_jobs_are_shared_by_all_workers():
    ray = Ray()
    pool = workers(Actor(), Actor(), ray=ray)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(pool.do, "abcdefgh")) == [letter.encode() for letter in "abcdefgh"]
    pool.end()
    assert len(ray.killed) == 2


LASTING = [
    (Actor(raising(RayTaskError("ours"))), RayTaskError, "ours"),
    (
        Actor(raising(RayError("killed"))),
        ClusterError,
        "3 workers were lost at a job, .*: killed",
    ),
    (Actor(raising(ConnectionError("gone"))), ClusterError, r"connection to the cluster was lost: gone\. See that"),
    (Actor(problem="There is no index at x."), ClusterError, "no index at x"),
    (Actor(do=lambda job: ("There is no index at x.", b"")), ClusterError, "no index at x"),
    (Actor(versions={"questree": "0.0.1"}), ClusterError, r"The cluster has questree 0\.0\.1, and here is .*: install"),
    (Actor(ready=raising(RayError("No module named 'questree'"))), ClusterError, "No module named 'questree'"),
    (Actor(ready=raising(RayError("out of memory"))), ClusterError, "cannot start workers: out of memory"),
]


@pytest.mark.parametrize(("actor", "error", "said"), LASTING, ids=[said for _, _, said in LASTING])
def test_what_every_worker_would_meet_ends_the_work(actor, error, said):
    with pytest.raises(error, match=said):
        workers(actor).do("job")


def test_nobody_waits_for_ever_for_a_worker_that_is_never_ready(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.01)
    with pytest.raises(ClusterError, match="started no worker for"):
        workers(never_ready()).do("job")


def test_the_end_frees_whoever_waits():
    pool = workers(never_ready())
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(pool.do, "job") for _ in range(2)]
        pool.end()
        for one in waiting:
            with pytest.raises(ClusterError, match="ended"):
                one.result()


PRINTED = """
from questree.retrieval.indexes import cluster
cluster._start_here = lambda ray: None
with cluster.connected("ray"):
    pass
from ray._private.worker import print_to_stdstream
print_to_stdstream({"lines": ["A worker died"], "pid": "raylet", "is_err": False}, ignore_prefix=False)
"""


@pytest.mark.ray
def test_ray_prints_nothing_among_our_lines():
    """It tells of workers that die, on the stdout of whoever started it; it reads at its import where to."""
    pytest.importorskip("ray", reason="needs questree[cluster]")
    ran = subprocess.run([sys.executable, "-c", PRINTED], check=True, capture_output=True, text=True)
    assert ran.stdout == ""


@pytest.mark.parametrize("on", ["spark", "ray://", "ray://head", "ray:/head:1", "http://head:10001", "Ray", ""])
def test_anything_else_than_a_cluster_is_refused(on):
    with pytest.raises(ClusterError, match="name `ray` for this machine, or the address"), connected(on):
        pass


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(QuestreeError, match=r"pip install 'questree\[cluster\]'"), connected("ray"):
        pass


class Starting(Ray):
    """A Ray that is too slow at its first starts."""

    def __init__(self, *errors):
        super().__init__()
        self.errors, self.started, self.ended = list(errors), 0, 0

    def is_initialized(self):
        return False

    def init(self, *given, **options):
        self.started += 1
        if self.errors:
            raise self.errors.pop(0)

    def shutdown(self):
        self.ended += 1


TOO_SLOW = Exception("The current node timed out during startup. This could happen because ...")


def test_ray_is_started_once_more_if_it_was_too_slow(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", ray := Starting(TOO_SLOW))
    with connected("ray") as found:
        assert found.ray is ray
        assert (ray.started, ray.ended) == (2, 1)


@pytest.mark.parametrize("errors", [[TOO_SLOW, TOO_SLOW], [OSError("no room")]])
def test_ray_that_does_not_start_is_told(errors, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", Starting(*errors))
    with pytest.raises(ClusterError, match=r"cannot be used: (The current node timed out|no room)"), connected("ray"):
        pass


@pytest.mark.ray
def test_a_server_that_is_no_cluster_is_not_waited_for_for_ever(monkeypatch):
    client = pytest.importorskip("ray.util.client.worker", reason="needs questree[cluster]")
    monkeypatch.setattr(client, "INITIAL_TIMEOUT_SEC", 0.05)
    monkeypatch.setattr(client, "MAX_TIMEOUT_SEC", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"ray://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"The cluster {address} cannot be used: .*timeout"), connected(address):
            pass
    hook = pytest.importorskip("ray._private.client_mode_hook")
    assert not hook.is_client_mode_enabled  # or `--on ray` would fail in this process from now on
