"""The routes of the pages of runs: which there are, any of them compared, and each page when it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeVar
from zlib import crc32

from anyio import CapacityLimiter, move_on_after
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ..common.errors import QuestreeError
from ..evaluation import Tracking
from ..evaluation.comparison.labels import told_apart
from ..evaluation.run_file import find, reading
from ..evaluation.stored_runs import StoredRun, runs_in
from ..evaluation.tracked_runs import ListedRun, fetch_kept, tracked_run, tracked_runs
from ..evaluation.tracking_store import without_password
from ..pages import as_html
from ..pages.shown_runs import ShownRuns
from ..pages.study import Study
from ..retrieval.serving.server_limits import Refused

T = TypeVar("T")

_PATIENCE = 30.0
"""Seconds for a tracking server to answer: MLflow itself tries for minutes."""


class Runs:
    """The runs that a server shows: of files, each read when a page of it is asked for, and of an MLflow store.

    One thing is read of each at a time.

    Args:
        sources: folders of runs, and capsules.
        tracking: where the runs are tracked that are listed beside them; None lists none.
        mlflow: the address of MLflow's pages, for links to runs and traces; empty if it is not known.
    """

    def __init__(self, sources: Sequence[Path], tracking: Tracking | None, mlflow: str):
        self.sources, self._tracking, self.mlflow = sources, tracking, mlflow
        self.store = without_password(tracking.uri) if tracking else ""
        self._turns = {"files": CapacityLimiter(1), "store": CapacityLimiter(1)}  # of no thread that answers questions
        self._study = lru_cache(maxsize=4)(self._read)
        self._in_file = lru_cache(maxsize=64)(_in_file)

    async def listed(self) -> tuple[list[ListedRun], list[str]]:
        """Return the runs, the newest first, and why some cannot be read."""
        found, problems = list[ListedRun](), list[str]()
        store = partial(tracked_runs, self._tracking) if self._tracking else list[ListedRun]
        for whose, read in (("files", self._of_files), ("store", store)):
            try:
                found += await self._ask(whose, read)
            except QuestreeError as error:
                problems.append(str(error))
        return sorted(found, key=lambda run: run.began, reverse=True), problems

    async def page(self, keys: tuple[str, ...], name: str) -> str | None:
        """Return a page of some runs; None if there is none of this name.

        Raises:
            QuestreeError: there is no such run, or it cannot be read.
        """
        whose = "files" if all(map(_is_of_file, keys)) else "store"
        return await self._ask(whose, partial(self._drawn, keys, name))

    async def _ask(self, whose: str, task: Callable[[], T]) -> T:
        with move_on_after(_PATIENCE):
            return await run_sync(task, abandon_on_cancel=True, limiter=self._turns[whose])
        raise QuestreeError(f"The runs have not been read within {_PATIENCE:g} seconds.")

    def _of_files(self) -> list[ListedRun]:
        found = list[ListedRun]()
        for number, source in enumerate(self.sources, start=1):
            with suppress(QuestreeError):  # its own page tells what is wrong
                files = find(source)
                for path, wanted in files:
                    key = f"{number}.{crc32(path.parent.name.encode())}" if len(files) > 1 else str(number)
                    found += self._in_file(path, wanted, key, path.stat().st_mtime)
        return found

    def _drawn(self, keys: tuple[str, ...], name: str) -> str | None:
        if len(keys) == 1 and not _is_of_file(keys[0]) and self._tracking:
            run = tracked_run(self._tracking, keys[0])
            if not run.kept:
                return as_html("tracked_run.html", run=run, mlflow=self.mlflow) if name == "index.html" else None
        return self._study(keys).page(name)

    def _read(self, keys: tuple[str, ...]) -> Study:
        """Return the pages of runs; of one number without a point, of all runs of that source."""
        if len(keys) == 1 and keys[0].isdigit():
            source = next(iter(self.sources[int(keys[0]) - 1 :]), None) if keys[0] != "0" else None
            if source is None:
                raise QuestreeError("There is no such run.")
            return Study(ShownRuns([source]), root="/", mlflow=self.mlflow)
        chosen = list[tuple[str, str, Path]]()
        files = {run.id: run for run in self._of_files()}
        with TemporaryDirectory(prefix="questree-") as folder:  # what is open stays readable
            for number, key in enumerate(keys):
                if key in files:
                    chosen.append((files[key].name, files[key].part_of, Path(files[key].place)))
                elif self._tracking and not _is_of_file(key):
                    inside = Path(folder) / str(number)
                    inside.mkdir()
                    run = tracked_run(self._tracking, key)
                    kept = fetch_kept(self._tracking, run.kept, inside)
                    chosen += [(name, run.listed.name, place) for name, place in kept.items()]
            if not chosen:
                raise QuestreeError("There is no such run, or it holds no questions.")
            names = told_apart((name, part_of) for name, part_of, _ in chosen)
            return Study(ShownRuns([place for *_, place in chosen], names), root="/", mlflow=self.mlflow)


async def runs_of(request: Request) -> Runs:
    """Return the runs that the application shows."""
    runs: Runs = request.app.state.runs
    return runs


Shown = Annotated[Runs, Depends(runs_of)]

routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@routes.get("/runs")
async def listed(
    runs: Shown, find: str = "", task: str = "", program: str = "", lm: str = "", sort: str = "began"
) -> str:
    """Return the list of runs."""
    every, problems = await runs.listed()
    wanted = {"task": task, "program": program, "lm": lm}
    offered = {name: sorted({getattr(run, name) for run in every} - {""}) for name in wanted}
    shown = [run for run in every if all(one in ("", getattr(run, name)) for name, one in wanted.items())]
    shown = [run for run in shown if find.casefold() in f"{run.name} {run.program} {run.part_of}".casefold()]
    if sort != "began":
        shown.sort(key=lambda run: run.figures.get(sort, -1), reverse=True)
    about: dict[str, Any] = {"sources": runs.sources, "problems": problems, "offered": offered, "mlflow": runs.mlflow}
    about |= {"store": runs.store, "wanted": {**wanted, "find": find}}
    return as_html("runs.html", runs=shown, every=len(every), sort=sort, **about)


@routes.get("/runs/compare")
async def compare(run: Annotated[list[str], Query()] = []) -> Response:  # noqa: B006
    """Return the way to the comparison of runs that were ticked."""
    if not run:
        raise Refused(400, "tick two runs or more", "invalid_request")
    return RedirectResponse(f"/runs/{'+'.join(run)}/index.html", 303)


@routes.get("/runs/{keys}")
async def first_page(request: Request) -> Response:
    """Return the way to the first page of some runs."""
    return RedirectResponse(f"{request.url.path}/index.html", 307)


@routes.get("/runs/{keys}/{name}")
async def page(keys: str, name: str, runs: Shown) -> str:
    """Return a page of some runs."""
    try:
        content = await runs.page(tuple(keys.split("+")), name)
    except QuestreeError as error:
        raise Refused(404, str(error), "unreadable") from None
    if content is None:
        raise Refused(404, "there is no such page", "not_found")
    return content


def _is_of_file(key: str) -> bool:
    return key.replace(".", "").isdigit()


def _in_file(path: Path, wanted: str, source: str, changed: float) -> list[ListedRun]:
    """Return a file's runs as the list shows them; the time when it changed tells one state of it from another."""
    found = list[ListedRun]()
    with reading(path) as file:
        for (name,) in file.rows("SELECT name FROM run WHERE ? IN ('', name) ORDER BY place IS NULL, place", wanted):
            with suppress(QuestreeError):
                found += (_listed(run, source, changed) for run in runs_in(file, name, whole=False))
    return found


def _listed(run: StoredRun, source: str, changed: float) -> ListedRun:
    facts = {"task": run.identity.get("task"), "lm": run.part("lm").get("name"), "program": run.identity.get("program")}
    figures, state = dict[str, float](), "not scored"
    with suppress(QuestreeError):
        one = run.evaluation
        shares = {"score": one.score.mean, "score_low": one.score.low, "score_high": one.score.high}
        figures = {**shares, "grounded": one.grounded.mean, "questions": one.n, "cost": one.spent.cost}
        figures["lm_calls_a_question"], state = one.spent.calls / one.n, "finished"
    return ListedRun(
        id=f"{source}.{run.number}",
        name=run.name,
        place=str(run.place),
        part_of=run.part_of,
        simulated=run.simulated,
        began=datetime.fromtimestamp(changed, timezone.utc),
        state=state,
        figures=figures,
        self_written=any(record.self_written for record in run.records),
        **{name: str(fact or "") for name, fact in facts.items()},
    )
