"""The workers of a cluster as a run knows them: handed one job for each place, replaced if they are lost."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from types import SimpleNamespace

import pytest

from questree.common.errors import QuestreeError
from questree.common.manifests import installed_versions
from questree.retrieval.indexes import cluster
from questree.retrieval.indexes.cluster import ClusterError, WorkerLostError, Workers, connected


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


class Actor:
    """Says what it is told to say when it is ready, and does jobs by a function."""

    def __init__(self, do=lambda job: ("", job.encode()), problem="", versions=None, ready=None, warns=()):
        said = (problem, installed_versions(cluster._SAME) if versions is None else versions)
        self.ready, self.do = Remote(ready or (lambda: said)), Remote(lambda *job: (*do(*job), warns))


class Ray:
    """What `Workers` takes of Ray."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self):
        self.killed = []

    def kill(self, actor):
        self.killed.append(actor)


def workers(actors, number=1, places=1, ray=None):
    return Workers(ray or Ray(), iter(actors).__next__, number, places)


def raising(error):
    def fail(*job):
        raise error

    return fail


def test_jobs_are_shared_by_the_places_of_all_workers():
    pool = workers([Actor(), Actor()], number=2, places=2)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(pool.do, "abcdefgh")) == [letter.encode() for letter in "abcdefgh"]


def test_a_lost_worker_is_replaced_and_its_job_is_done_by_the_next():
    ray, lost = Ray(), Actor(do=raising(RayError("killed")))
    pool = workers([lost, Actor()], places=3, ray=ray)
    assert pool.do("job") == b"job"
    assert ray.killed == [lost]
    pool.end()
    assert len(ray.killed) == 2


def test_a_job_that_every_worker_is_lost_at_is_given_up():
    pool = workers([*(Actor(do=raising(RayError("killed"))) for _ in range(cluster.ATTEMPTS)), Actor()])
    with pytest.raises(WorkerLostError, match="3 workers were lost at it, often for lack of memory: killed"):
        pool.do("job")
    assert pool.do("another") == b"another"


def test_a_fault_of_the_code_is_no_lost_worker():
    with pytest.raises(RayTaskError, match="ours"):
        workers([Actor(do=raising(RayTaskError("ours")))]).do("job")


def test_a_lost_connection_is_named():
    with pytest.raises(ClusterError, match=r"The connection to the cluster was lost: gone\. See that it runs\."):
        workers([Actor(do=raising(ConnectionError("gone")))]).do("job")


def test_a_connection_that_is_lost_with_a_worker_is_named():
    def make():
        if made:
            raise ConnectionError("gone")
        made.append(Actor(do=raising(RayError("killed"))))
        return made[0]

    made = []
    with pytest.raises(ClusterError, match="The connection to the cluster was lost: gone"):
        Workers(Ray(), make, 1, 1).do("job")


def test_what_a_worker_lacks_ends_the_work():
    with pytest.raises(ClusterError, match="no index at x"):
        workers([Actor(problem="There is no index at x.")]).do("job")
    with pytest.raises(ClusterError, match="no index at x"):
        workers([Actor(do=lambda job: ("There is no index at x.", b""))]).do("job")


def test_another_version_on_the_cluster_is_named():
    with pytest.raises(ClusterError, match=r"The cluster has questree 0\.0\.1, and here is .*: install the same"):
        workers([Actor(versions={"questree": "0.0.1"})]).do("job")


def test_a_cluster_without_questree_is_named():
    failing = Actor(ready=raising(RayError("No module named 'questree'")))
    with pytest.raises(ClusterError, match="Questree is not installed where the cluster runs its workers"):
        workers([failing]).do("job")


def test_workers_that_die_as_they_start_are_not_started_for_ever():
    dying = (Actor(ready=raising(RayError("out of memory"))) for _ in range(cluster.ATTEMPTS))
    with pytest.raises(ClusterError, match="cannot start workers: out of memory"):
        workers(dying).do("job")


def test_those_that_start_in_between_let_a_long_run_lose_any_number():
    """On a cluster whose machines come and go, some workers die as they start, all along."""

    class Once(Actor):
        def __init__(self):
            jobs = iter([("", b"done")])
            super().__init__(do=lambda job: next(jobs, None) or raising(RayError("killed"))())

    dying = Actor(ready=raising(RayError("its machine has gone")))
    pool = workers(one for _ in range(6) for one in (dying, Once()))
    assert [pool.do("job") for _ in range(6)] == [b"done"] * 6


def test_nobody_waits_for_ever_for_a_worker_that_is_never_ready(monkeypatch, caplog):
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=count(step=cluster.SILENCE / 2).__next__))
    monkeypatch.setattr(cluster, "_LOOK", 0.001)
    silent = Actor()
    silent.ready.remote = lambda: SimpleNamespace(future=Future)
    with pytest.raises(ClusterError, match="started no worker for 600 s"):
        workers([silent]).do("job")
    assert [record.message.partition(":")[0] for record in caplog.records] == ["Waiting for the first worker"]


def test_the_end_frees_whoever_waits():
    silent = Actor()
    silent.ready.remote = lambda: SimpleNamespace(future=Future)
    pool = workers([silent])
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.do, "job")
        pool.end()
        with pytest.raises(ClusterError, match="ended"):
            waiting.result()


def test_what_ray_tells_while_it_is_called_holds_nobody_up():
    """Ray calls back on a thread of its own, and `kill` waits for that thread."""
    late = Future()
    starting = Actor()
    starting.ready.remote = lambda: SimpleNamespace(future=lambda: late)

    class Busy(Ray):
        heard = None

        def kill(self, actor):
            if not late.done():
                told = threading.Thread(target=late.set_exception, args=[RayError("killed")], daemon=True)
                told.start()
                told.join(5)
                self.heard = not told.is_alive()

    ray = Busy()
    workers([Actor(), starting], number=2, ray=ray).end()
    assert ray.heard


def test_what_workers_warn_of_is_shown_once_and_counted_in_the_end(caplog):
    pool = workers([Actor(warns=["the disk is \x1b[1mfull"]), Actor(warns=["slow"])], number=2)
    for job in "abc":
        pool.do(job)
    pool.end()
    assert caplog.messages == [
        "A worker warned: the disk is [1mfull",
        "A worker warned: slow",
        "Workers warned 2 times: the disk is [1mfull",
    ]


class Warns:
    """Work that warns of what it is given."""

    def __init__(self, given):
        self.log = logging.getLogger("questree.retrieval")

    def start(self, job):
        self.log.warning("no room for %s", job)
        self.log.info("begun")
        done = Future()
        done.set_result(b"done")
        return done


def test_a_worker_sends_what_it_warned_of_once(monkeypatch, workplace):
    monkeypatch.setattr(cluster, "import_module", {"here": SimpleNamespace(work=Warns)}.__getitem__)
    worker = cluster._Worker("here:work", "null", ".")
    try:
        for job in ("a", "b"):
            assert asyncio.run(worker.do(job)) == ("", b"done", [f"no room for {job}"])
    finally:
        logging.getLogger("questree").removeHandler(worker._warnings)


PRINTED = """
from questree.retrieval.indexes.cluster import _ray
_ray("ray")
from ray._private.worker import print_to_stdstream
print_to_stdstream({"lines": ["A worker died"], "pid": "raylet", "is_err": False}, ignore_prefix=False)
"""


def test_ray_prints_nothing_among_our_lines():
    """It tells of workers that die, on the stdout of whoever started it, also where it was asked not to log there."""
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


def test_ray_is_started_once_more_if_it_was_too_slow(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "ray", ray := Starting(TOO_SLOW))
    with connected("ray") as found:
        assert found.ray is ray
        assert (ray.started, ray.ended) == (2, 1)
    assert "did not start within the 30 seconds" in caplog.text


@pytest.mark.parametrize("errors", [[TOO_SLOW, TOO_SLOW], [OSError("no room")]])
def test_ray_that_does_not_start_is_told(errors, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", Starting(*errors))
    with pytest.raises(ClusterError, match=r"cannot be used: (The current node timed out|no room)"), connected("ray"):
        pass


def test_an_address_where_nothing_listens_is_named_at_once():
    pytest.importorskip("ray", reason="needs questree[cluster]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"ray://127.0.0.1:{free.getsockname()[1]}"
    said = rf"No Ray cluster answers at {address} .*ray start --head"
    with pytest.raises(ClusterError, match=said), connected(address):
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
