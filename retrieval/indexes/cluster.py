"""Workers on a Ray cluster: processes on many machines, or on this one, that are given jobs one by one.

A worker is given texts only: the name of what does the work, and JSON. It makes the rest by itself. Ray is imported
here, and by nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlsplit

from ...common.errors import QuestreeError, needs_extra
from ...common.manifests import installed_versions
from ...common.secrets import without_secrets
from ...common.text import printable

LOCAL = "ray"
ATTEMPTS = 3  # workers that a job may be given to, if they are lost
CORE_GROUP = 4  # cores of a worker that computes: more of them for one encoder gain little
PATIENCE = 600.0  # seconds without any worker: it may load a large index, or wait for cores that others use
SILENCE = 30.0  # of them, before the user is told

_LOOK = 0.5  # seconds between looks at whether workers are still to come
_ANSWER = 10.0  # seconds in which the head of a cluster must answer
_OBJECTS = 512 * 2**20  # bytes of results on their way, in a cluster of this machine alone
_SAME = ("questree", "dspy")  # packages that must have one version everywhere
_TOO_SLOW = "timed out during startup"  # Ray's words
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
_OWN_LINES = "RAY_DEDUP_LOGS_SKIP_REGEX"  # lines that Ray leaves out of those which it prints on our stdout

logger = logging.getLogger(__name__)


class ClusterError(QuestreeError):
    """A cluster that cannot be used, or that cannot do what it is given."""


class WorkerLostError(ClusterError):
    """A job at which several workers were lost."""


class Work(Protocol):
    """What does the work in the process of a worker; it is made from JSON."""

    def start(self, *job: str) -> Future[bytes]:
        """Begin a job; return its result to come."""


@contextmanager
def connected(on: str, workers: int | None = None) -> Iterator[Cluster]:
    """Join a cluster while the block runs; one that this process has joined already is used.

    Args:
        on: ``ray``, which starts one on this machine, or the address of a cluster, ``ray://HOST:10001``.
        workers: how many the user wants; None for as many as suit the work.

    Raises:
        ClusterError: if it is something else, Ray is not installed, the cluster does not answer, or another version
            of Ray or Python runs there.
    """
    ray = _ray(on)
    if ray.is_initialized():
        yield Cluster(ray, on, workers)
        return
    try:
        if on == LOCAL:
            _start_here(ray)
        else:
            _check_answers(on)
            ray.init(on, **_QUIET)
    except ClusterError:
        raise
    except Exception as error:  # of Ray, gRPC and the operating system
        ray.shutdown()  # after a failure to join, Ray would still take every later call for one to that cluster
        hint = ". Is this the port of Ray's client server, and does it want a token (RAY_AUTH_MODE=token)?"
        listens = isinstance(error, ConnectionError)
        raise ClusterError(
            f"The cluster {on} cannot be used: {_in_one_line(error)}{hint if listens else ''}"
        ) from error
    try:
        yield Cluster(ray, on, workers)
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
        logger.warning("Ray did not start within the 30 seconds that it allows itself: once more")
        ray.shutdown()
        start()


def _ray(on: str) -> Any:
    if not re.fullmatch(r"ray(://[^\s/:]+:\d{1,5})?", on):
        raise ClusterError(f"--on {on}: name `ray` for this machine, or the address of a cluster: ray://HOST:10001")
    os.environ.setdefault(_OWN_LINES, ".")  # it tells of each worker that dies, and so do we
    with needs_extra("cluster"):
        return import_module("ray")


def _check_answers(on: str) -> None:
    """Check that something listens at the address: Ray would try for a minute.

    Raises:
        ClusterError: if nothing does.
    """
    address = urlsplit(on)
    try:
        socket.create_connection((address.hostname, address.port), timeout=_ANSWER).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(
            f"No Ray cluster answers at {on} ({error}). Start one there (`ray start --head`), or name `--on ray` for "
            "this machine."
        ) from None


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process is connected to.

    Attributes:
        ray: the library.
        on: how the user named it.
        wanted: workers that the user wants; None for as many as suit the work.
    """

    ray: Any
    on: str
    wanted: int | None = None

    @contextmanager
    def waiting(self, made_by: str, given: Any, *, jobs: int) -> Iterator[Workers]:
        """Start workers that mostly wait for others, each with several jobs at a time; they end with the block.

        Args:
            made_by: ``module:name`` of what makes the work from what is given.
            given: as JSON.
            jobs: how many are done at the same time, by all workers together.
        """
        cores = self._sum("CPU")
        number = self.wanted or max(1, min(jobs, int(cores)))
        options = {"num_cpus": min(1.0, cores / number)}
        with self._workers(made_by, given, number, options, places=-(-jobs // number)) as workers:
            yield workers

    @contextmanager
    def computing(self, made_by: str, given: Any) -> Iterator[Workers]:
        """Start workers that compute, one job at a time: one for each GPU, or for each group of cores.

        Args:
            made_by, given: as for `waiting`.
        """
        gpus, cores = int(self._sum("GPU")), int(self._sum("CPU"))
        if gpus:
            number, options = self.wanted or gpus, {"num_gpus": 1}
        else:
            smallest = min((int(node) for node in self._each("CPU")), default=1)
            group = max(1, min(CORE_GROUP, smallest, cores // (self.wanted or 1)))
            number, options = self.wanted or max(1, cores // group), {"num_cpus": group}
        with self._workers(made_by, given, number, options, places=1) as workers:
            yield workers

    def _each(self, resource: str) -> list[float]:
        """Return how much of a resource each node has that has some."""
        nodes = (node["Resources"].get(resource, 0) for node in self.ray.nodes() if node["Alive"])
        return [amount for amount in nodes if amount]

    def _sum(self, resource: str) -> float:
        return sum(self._each(resource))

    @contextmanager
    def _workers(
        self, made_by: str, given: Any, number: int, options: dict[str, Any], *, places: int
    ) -> Iterator[Workers]:
        actor = self.ray.remote(_Worker).options(scheduling_strategy="SPREAD", **options)
        workers = Workers(self.ray, lambda: actor.remote(made_by, json.dumps(given), os.getcwd()), number, places)
        try:
            yield workers
        finally:
            workers.end()


@dataclass(eq=False)
class _Place:
    """A worker, as those who give it jobs know it."""

    actor: Any


_Ready = tuple[str, dict[str, str]]
"""What a worker says when it has started: why it cannot work, if so, and versions of packages."""


@dataclass(eq=False)
class _News:
    """What a worker that was started says of itself, or the error that it died of."""

    worker: _Place
    told: Future[_Ready]


class Workers:
    """Workers of one kind. One that is lost is replaced, and what it was doing is given to another.

    Args:
        ray: the library.
        make: starts a process.
        number: of workers.
        places: jobs that each does at a time.
    """

    def __init__(self, ray: Any, make: Callable[[], Any], number: int, places: int):
        self.number = number
        self._ray, self._make, self._places = ray, make, places
        self._starting, self._ready = set[_Place](), set[_Place]()
        self._free = SimpleQueue[_Place | _News]()
        self._problem, self._died_at_start, self._warned = "", 0, False
        self._warnings = Counter[str]()
        self._lock = Lock()
        self._fill()

    def share(self, content: str) -> Any:
        """Return what stands for a long text in a job; the text goes to each machine once."""
        return self._ray.put(content)

    def do(self, *job: Any) -> bytes:
        """Give a job to a worker, wait for its result and return it. Called on many threads.

        Raises:
            WorkerLostError: if several workers were lost at it.
            ClusterError: if the work cannot be done, or there is no worker; says why.
        """
        lost = ""
        for _ in range(ATTEMPTS):
            worker = self._take()
            try:
                with _connection():
                    problem, result, warnings = worker.actor.do.remote(*job).future().result()
            except self._ray.exceptions.RayTaskError:  # a fault of ours: every worker would have it
                raise
            except self._ray.exceptions.RayError as error:
                lost = _in_one_line(error)
                self._give_up(worker, lost)
                continue
            self._free.put(worker)
            self._pass_on(warnings)
            if problem:
                raise ClusterError(problem)
            return bytes(result)
        raise WorkerLostError(f"{ATTEMPTS} workers were lost at it, often for lack of memory: {lost}")

    def end(self) -> None:
        """Stop all workers, free whoever waits for one, and tell how often they warned of the same."""
        with self._lock:
            for said, times in self._warnings.items():
                if times > 1:
                    logger.warning("Workers warned %d times: %s", times, said)
            self._warnings.clear()
            self._problem = self._problem or "The workers were ended."
            for worker in self._starting | self._ready:
                self._kill(worker)

    def _pass_on(self, warnings: Iterable[str]) -> None:
        """Show what workers warn of, each once."""
        with self._lock:
            for said in map(printable, warnings):
                if said not in self._warnings:
                    logger.warning("A worker warned: %s", said)
                self._warnings[said] += 1

    def _take(self) -> _Place:
        """Return a worker that has room for a job."""
        since = time.monotonic()
        while not self._problem:
            self._fill()
            with suppress(Empty):
                found = self._free.get(timeout=_LOOK)
                if isinstance(found, _News):
                    self._hear(found.worker, found.told)
                elif found in self._ready:  # of one that was lost, other places may still be here
                    return found
            if self._ready:
                since = time.monotonic()
            elif time.monotonic() > since + PATIENCE:
                self._problem = (
                    f"The cluster has started no worker for {PATIENCE:.0f} s. It may have no free cores (`ray status` "
                    "there tells), or fewer than --workers asks for."
                )
            elif time.monotonic() > since + SILENCE and not self._warned:
                self._warned = True
                logger.warning(
                    "Waiting for the first worker: it loads what it needs, or the cluster has no free cores."
                )
        raise ClusterError(self._problem)

    def _fill(self) -> None:
        """Start the workers that are missing; each is given jobs once it says that it is ready."""
        with self._lock:
            while not self._problem and len(self._starting) + len(self._ready) < self.number:
                with _connection():
                    worker = _Place(self._make())
                    ready = worker.actor.ready.remote().future()
                self._starting.add(worker)
                # called on Ray's own thread, which must wait for nothing
                ready.add_done_callback(partial(self._tell, worker))

    def _tell(self, worker: _Place, told: Future[_Ready]) -> None:
        self._free.put(_News(worker, told))

    def _hear(self, worker: _Place, told: Future[_Ready]) -> None:
        """Take what a new worker says of itself."""
        with self._lock:
            self._starting.discard(worker)
            try:
                problem, versions = told.result()
            except Exception as error:  # it died, or its machine
                self._died_at_start += 1
                lasting = "No module named" in str(error) or self._died_at_start >= ATTEMPTS * self.number
                self._problem = self._problem or (_not_started(error) if lasting else "")
                return
            self._problem = self._problem or problem or _other_versions(versions)
            self._died_at_start = 0
            self._ready.add(worker)
            if not self._problem:
                for _ in range(self._places):
                    self._free.put(worker)

    def _give_up(self, worker: _Place, why: str) -> None:
        """Count a worker as lost."""
        with self._lock:
            if worker in self._ready and not self._problem:
                logger.warning("A worker was lost. What it was doing is done again by another one: %s", why)
                self._ready.discard(worker)
                self._kill(worker)  # it may only be out of reach

    def _kill(self, worker: _Place) -> None:
        with suppress(Exception):
            self._ray.kill(worker.actor)


@contextmanager
def _connection() -> Iterator[None]:
    """Report the loss of the connection to a cluster while the block runs.

    Raises:
        ClusterError: if it is lost.
    """
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
    return f"The cluster has {_listed(there)}, and here is {_listed(here)}: install the same on every machine."


def _not_started(error: Exception) -> str:
    said = _in_one_line(error)
    if "No module named" in said:
        return f"Questree is not installed where the cluster runs its workers; install it there. Ray said: {said}"
    return f"The cluster cannot start workers: {said}"


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "no Questree"


class _Worker:
    """The process of a worker. Everything that it tells is plain text or bytes."""

    def __init__(self, made_by: str, given: str, folder: str):
        self._problem, self._warnings = "", _Warnings()
        logging.getLogger(__name__.partition(".")[0]).addHandler(self._warnings)
        with suppress(OSError):  # on a machine without that folder, paths must be absolute
            os.chdir(folder)
        module, _, name = made_by.partition(":")
        try:
            self._work: Work = getattr(import_module(module), name)(json.loads(given))
        except Exception as error:
            self._problem = _told(error)

    async def ready(self) -> _Ready:
        """Return why it cannot work, if so, and the versions of what must be the same everywhere."""
        return self._problem, installed_versions(_SAME)

    async def do(self, *job: str) -> tuple[str, bytes, list[str]]:
        """Return why a job could not be done, if so, its result, and what was warned of since the last one."""
        try:
            problem, result = "", await asyncio.wrap_future(self._work.start(*job))
        except Exception as error:
            problem, result = _told(error), b""
        return problem, result, self._warnings.taken()


class _Warnings(logging.Handler):
    """Keeps what a worker warns of, until it is sent."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept = deque[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning."""
        self._kept.append(without_secrets(record.getMessage()))

    def taken(self) -> list[str]:
        """Return what is kept, and keep it no longer."""
        return [self._kept.popleft() for _ in range(len(self._kept))]


def _told(error: Exception) -> str:
    """Return an error as the user is told it."""
    what = str(error) if isinstance(error, QuestreeError) else f"{type(error).__name__}: {error}"
    return without_secrets(
        f"A worker on {socket.gethostname()} cannot do its work: {what} (Indexes, checkpoints, code of your own and "
        "keys must be on each machine of the cluster under the same name: docs/clusters.md.)"
    )


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
