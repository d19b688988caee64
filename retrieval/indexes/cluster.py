"""Workers on a Ray cluster: processes on many machines, or on this one, that are given jobs one by one.

A worker is given texts only: the name of what does the work, and JSON. It makes the rest by itself. Ray starts a worker
that is lost again, and gives it its job again. Ray is imported here, and by nothing else.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any

from ...common.errors import QuestreeError, needs_extra
from ...common.manifests import installed_versions
from ...common.secrets import without_secrets

LOCAL = "ray"
ATTEMPTS = 3  # at a job, if its worker is lost
RESTARTS = 100  # of a worker: machines of a cluster may come and go
CORE_GROUP = 4  # cores of a worker that computes: more of them for one encoder gain little
PATIENCE = 600.0  # seconds without any worker: it may load a large index, or wait for cores that others use

_OBJECTS = 512 * 2**20  # bytes of results on their way, in a cluster of this machine alone
_SAME = ("questree", "dspy")  # packages that must have one version everywhere
_TOO_SLOW = "timed out during startup"  # Ray's words
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
_OWN_LINES = "RAY_DEDUP_LOGS_SKIP_REGEX"  # lines that Ray leaves out of those which it prints on our stdout

logger = logging.getLogger(__name__)

Work = Callable[..., bytes]
"""What does the jobs in the process of a worker; it is made from JSON."""


class ClusterError(QuestreeError):
    """A cluster that cannot be used, or that cannot do what it is given."""


@contextmanager
def connected(on: str, workers: int | None = None) -> Iterator[Cluster]:
    """Join a cluster while the block runs; one that this process has joined already is used.

    Args:
        on: ``ray``, which starts one on this machine, or the address of a cluster, ``ray://HOST:10001``.
        workers: how many the user wants; None for as many as suit the work.
    """
    if not re.fullmatch(r"ray(://[^\s/:]+:\d{1,5})?", on):
        raise ClusterError(f"--on {on}: name `ray` for this machine, or the address of a cluster: ray://HOST:10001")
    os.environ.setdefault(_OWN_LINES, ".")  # it tells of each worker that dies, also on our stdout
    with needs_extra("cluster"):
        ray = import_module("ray")
    if ray.is_initialized():
        yield Cluster(ray, workers)
        return
    try:
        if on == LOCAL:
            _start_here(ray)
        else:
            ray.init(on, **_QUIET)
    except Exception as error:  # of Ray, gRPC and the operating system
        ray.shutdown()  # after a failure to join, Ray would still take every later call for one to that cluster
        hint = (
            " Start one there (`ray start --head`); name the port of Ray's client server; and does it want a token "
            "(RAY_AUTH_MODE=token)?"
        )
        said = f"The cluster {on} cannot be used: {_in_one_line(error)}."
        raise ClusterError(said + (hint if isinstance(error, ConnectionError) else "")) from error
    try:
        yield Cluster(ray, workers)
    finally:
        ray.shutdown()


def _start_here(ray: Any) -> None:
    """Start Ray on this machine; once more if it was too slow, as it may be while the machine is busy."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it reports to its makers
    start = partial(ray.init, "local", include_dashboard=False, object_store_memory=_OBJECTS, **_QUIET)
    try:
        start()
    except Exception as error:  # Ray has no class of its own for this
        if _TOO_SLOW not in str(error):
            raise
        ray.shutdown()
        start()


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process is connected to.

    Attributes:
        wanted: workers that the user wants; None for as many as suit the work.
    """

    ray: Any
    wanted: int | None = None

    def computing(self, made_by: str, given: Any) -> Workers:
        """Start workers, one for each GPU, or for each group of cores; they end with a ``with`` block.

        Args:
            made_by: ``module:name`` of what makes the work from what is given.
        """
        cores = [int(node) for node in self._each("CPU")]
        if gpus := int(sum(self._each("GPU"))):
            return self._workers(made_by, given, self.wanted or gpus, num_gpus=1)
        group = max(1, min(CORE_GROUP, min(cores, default=1), sum(cores) // (self.wanted or 1)))
        return self._workers(made_by, given, self.wanted or max(1, sum(cores) // group), num_cpus=group)

    def _each(self, resource: str) -> list[float]:
        """Return how much of a resource each node has that has some."""
        nodes = (node["Resources"].get(resource, 0) for node in self.ray.nodes() if node["Alive"])
        return [amount for amount in nodes if amount]

    def _workers(self, made_by: str, given: Any, number: int, **needs: float) -> Workers:
        lasting = {"max_restarts": RESTARTS, "max_task_retries": ATTEMPTS - 1}
        actor = self.ray.remote(_Worker).options(scheduling_strategy="SPREAD", **lasting, **needs)
        with _connection():
            return Workers(self.ray, [actor.remote(made_by, json.dumps(given), os.getcwd()) for _ in range(number)])


class Workers:
    """Workers of one kind. Ray starts one that is lost again, and gives it its job again. They end with a block."""

    def __init__(self, ray: Any, actors: Sequence[Any]):
        self.number, self._ray, self._actors = len(actors), ray, actors
        self._begun = False  # whether one of them has started
        self._free = SimpleQueue[Any]()  # workers without a job; None when nobody gets one any more
        self._problem = ""
        for actor in actors:
            actor.ready.options(max_task_retries=-1).remote().future().add_done_callback(partial(self._hear, actor))

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def do(self, *job: Any) -> bytes:
        """Give a job to a worker, wait for its result and return it. Called on many threads."""
        errors, worker = self._ray.exceptions, self._take()
        try:
            with _connection():
                problem, result = worker.do.remote(*job).future().result()
        except errors.RayTaskError:  # a fault of ours
            raise
        except errors.RayError as error:
            problem = f"{ATTEMPTS} workers were lost at a job, often for lack of memory: {_in_one_line(error)}"
        if problem:
            raise ClusterError(problem)
        self._free.put(worker)
        return bytes(result)

    def end(self) -> None:
        """Stop all workers, and free whoever waits for one."""
        self._stop("The workers were ended.")
        for worker in self._actors:
            with suppress(Exception):
                self._ray.kill(worker)

    def _stop(self, problem: str) -> None:
        self._problem = self._problem or problem
        self._free.put(None)

    def _take(self) -> Any:
        """Return a worker that has no job."""
        try:
            worker = self._free.get(timeout=None if self._begun else PATIENCE)
        except Empty:
            if self._begun:
                return self._take()
            self._stop(
                f"The cluster has started no worker for {PATIENCE:.0f} s. It may have no free cores (`ray status` "
                "there tells), or fewer than --workers asks for."
            )
            worker = None
        if worker is None or self._problem:
            self._free.put(None)  # for the next who waits
            raise ClusterError(self._problem)
        return worker

    def _hear(self, worker: Any, ready: Future[tuple[str, dict[str, str]]]) -> None:
        """Take what a new worker says of itself. Called on Ray's own thread, which must wait for nothing."""
        try:
            problem, versions = ready.result()
        except Exception as error:  # it died as it started, as often as it was tried
            self._stop(f"The cluster cannot start workers: {_in_one_line(error)}")
            return
        if problem := problem or _other_versions(versions):
            self._stop(problem)
            return
        self._begun = True
        self._free.put(worker)


@contextmanager
def _connection() -> Iterator[None]:
    """Report the loss of the connection to a cluster while the block runs."""
    try:
        yield
    except ConnectionError as error:
        said = _in_one_line(error).rstrip(".")
        raise ClusterError(f"The connection to the cluster was lost: {said}. See that it runs.") from error


def _other_versions(there: dict[str, str]) -> str:
    """Return what is wrong with the versions on a worker; nothing if they are those of this process."""
    here = installed_versions(_SAME)
    if there == here:
        return ""
    listed = [", ".join(f"{name} {number}" for name, number in one.items()) or "no Questree" for one in (there, here)]
    return f"The cluster has {listed[0]}, and here is {listed[1]}: install the same on every machine."


class _Worker:
    """The process of a worker. Everything that it tells is plain text or bytes."""

    def __init__(self, made_by: str, given: str, folder: str):
        self._problem = ""
        with suppress(OSError):  # on a machine without that folder, paths must be absolute
            os.chdir(folder)
        module, _, name = made_by.partition(":")
        try:
            self._work: Work = getattr(import_module(module), name)(json.loads(given))
        except Exception as error:
            self._problem = _told(error)

    def ready(self) -> tuple[str, dict[str, str]]:
        """Return why it cannot work, if so, and the versions of what must be the same everywhere."""
        return self._problem, installed_versions(_SAME)

    def do(self, *job: str) -> tuple[str, bytes]:
        """Return why a job could not be done, if so, and its result."""
        try:
            return "", self._work(*job)
        except Exception as error:
            return _told(error), b""


def _told(error: Exception) -> str:
    """Return an error as the user is told it."""
    what = str(error) if isinstance(error, QuestreeError) else f"{type(error).__name__}: {error}"
    return without_secrets(
        f"A worker on {socket.gethostname()} cannot do its work: {what} (Indexes, checkpoints, code of your own and "
        "keys must be on each machine of the cluster under the same name: docs/clusters.md.)"
    )


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
