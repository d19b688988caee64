"""An MLflow store as pages ask it: one thing at a time, and not for longer than a visitor waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from anyio import CapacityLimiter, move_on_after
from anyio.to_thread import run_sync

from ..common.errors import QuestreeError
from ..evaluation import Tracking
from ..evaluation.tracked_runs import ListedRun, TrackedFile, fetch_kept, tracked_run, tracked_runs
from ..evaluation.tracking_store import without_password
from ..pages import as_html
from ..pages.shown_runs import ShownRuns
from ..pages.study import Study

T = TypeVar("T")

_PATIENCE = 30.0
"""Seconds for a tracking server to answer: MLflow itself tries for minutes."""


class Listed(NamedTuple):
    """The runs of a store, the newest first, its place without a password, and why there are none."""

    store: str
    runs: list[ListedRun]
    problem: str = ""


class TrackedStore:
    """An MLflow store, whose threads are none of those that answer questions.

    Args:
        tracking: where it is.
        mlflow: the address of MLflow's pages, for links; empty if it is not known.
    """

    def __init__(self, tracking: Tracking, mlflow: str):
        self._tracking, self._mlflow = tracking, mlflow
        self._turn = CapacityLimiter(1)
        self._study = lru_cache(maxsize=4)(self._read)

    async def runs(self) -> Listed:
        """Return the runs, or why they cannot be read."""
        store = without_password(self._tracking.uri)
        try:
            return Listed(store, await self._ask(partial(tracked_runs, self._tracking)))
        except QuestreeError as error:
            return Listed(store, [], str(error))

    async def page(self, id: str, name: str) -> str | None:
        """Return a page of a run; None if there is none of this name.

        Raises:
            QuestreeError: there is no such run, or the store cannot be read.
        """
        return await self._ask(partial(self._drawn, id, name))

    async def _ask(self, task: Callable[[], T]) -> T:
        with move_on_after(_PATIENCE):
            return await run_sync(task, abandon_on_cancel=True, limiter=self._turn)
        raise QuestreeError(f"It has not answered for {_PATIENCE:g} seconds.")

    def _drawn(self, id: str, name: str) -> str | None:
        run = tracked_run(self._tracking, id)
        if run.kept:
            return self._study(run.listed.name, run.kept).page(name)
        return as_html("tracked_run.html", run=run, mlflow=self._mlflow) if name == "index.html" else None

    def _read(self, title: str, kept: tuple[TrackedFile, ...]) -> Study:
        with TemporaryDirectory(prefix="questree-") as folder:  # what is open stays readable
            places = fetch_kept(self._tracking, kept, Path(folder))
            return Study(title, ShownRuns(list(places.values()), list(places)), root="/", mlflow=self._mlflow)
