"""An MLflow store as pages ask it: one thing at a time, on one thread, and what was known last while it is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NamedTuple, TypeVar

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
    """The runs of a store.

    Attributes:
        store: where it is, without a password.
        runs: the newest first.
        age: seconds since the store told them.
        problem: why it did not tell them anew; empty if it did, or is about to.
    """

    store: str
    runs: list[ListedRun]
    age: float
    problem: str


class TrackedStore:
    """An MLflow store. It has a thread of its own: a silent server holds up no more than that one.

    Args:
        tracking: where it is.
        mlflow: the address of MLflow's pages, for links; empty if it is not known.
    """

    def __init__(self, tracking: Tracking, mlflow: str):
        self._tracking, self._mlflow = tracking, mlflow
        self._thread = ThreadPoolExecutor(1, "questree-mlflow")
        self._overdue: Future[Any] | None = None
        self._looking = asyncio.Lock()
        self._known: list[ListedRun] = []
        self._told = 0.0
        self._study = lru_cache(maxsize=4)(self._read)

    async def runs(self) -> Listed:
        """Return the runs; those of the last list while the store is being asked for a new one, or gives none."""
        problem = ""
        if not (self._looking.locked() and self._told):
            async with self._looking:
                try:
                    self._known = await self._ask(partial(tracked_runs, self._tracking))
                    self._told = monotonic()
                except QuestreeError as error:
                    problem = str(error)
        age = monotonic() - self._told if self._told else 0.0
        return Listed(without_password(self._tracking.uri), self._known, age, problem)

    async def page(self, id: str, name: str) -> str | None:
        """Return a page of a run; None if there is none of this name.

        Raises:
            QuestreeError: there is no such run, or the store cannot be read.
        """
        return await self._ask(partial(self._drawn, id, name))

    async def _ask(self, task: Callable[[], T]) -> T:
        """Return what a task on the store's thread gives.

        Raises:
            QuestreeError: it takes too long, or an earlier one that took too long still goes on.
        """
        silent = QuestreeError(f"It has not answered for {_PATIENCE:.0f} seconds.")
        if self._overdue is not None and not self._overdue.done():
            raise silent
        asked = self._thread.submit(task)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(asked), _PATIENCE)
        except asyncio.TimeoutError:
            if asked.running():
                self._overdue = asked
            raise silent from None

    def _drawn(self, id: str, name: str) -> str | None:
        run = tracked_run(self._tracking, id)
        if run.kept:
            return self._study(run.listed.name, run.kept).page(name)
        return as_html("tracked_run.html", run=run, mlflow=self._mlflow) if name == "index.html" else None

    def _read(self, title: str, kept: tuple[TrackedFile, ...]) -> Study:
        with TemporaryDirectory(prefix="questree-") as folder:  # what is open stays readable
            places = fetch_kept(self._tracking, kept, Path(folder))
            return Study(title, ShownRuns(list(places.values()), list(places)), root="/", mlflow=self._mlflow)
