"""The runs of an MLflow store as a list: the newest of an experiment, without the candidates of optimizers."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from ..common.errors import QuestreeError
from ..lm.failure import first_line
from .tracking import SQLITE, Tracking, without_password

MOST = 200
"""Runs in a list."""


class ListedRun(NamedTuple):
    """A run of an MLflow store, as far as a list shows it.

    Attributes:
        place: where it stands in MLflow's pages.
        part_of: the name of the run that it is nested in; empty if it is in none, or in an older one.
        score: of the program, after compilation if there was one; None if there is none.
        state: as MLflow calls it, in small letters.
    """

    id: str
    name: str
    place: str
    part_of: str
    task: str
    lm: str
    score: float | None
    simulated: bool
    began: datetime
    state: str


def tracked_runs(tracking: Tracking) -> list[ListedRun]:
    """Return the runs of a store's experiment, the newest first.

    Raises:
        QuestreeError: the store cannot be read.
    """
    import mlflow

    file = tracking.uri.removeprefix(SQLITE).partition("?")[0]
    if tracking.uri.startswith(SQLITE) and not Path(file).exists():  # MLflow would make one
        raise QuestreeError(f"There is no MLflow store at {file}.")
    try:
        found = _found(mlflow.MlflowClient(tracking.uri), tracking.experiment)
    except Exception as error:  # MLflow lets errors of a database through as they are
        uri = without_password(tracking.uri)
        raise QuestreeError(f"The runs in {uri} cannot be listed: {first_line(error).rstrip('.')}.") from error
    names = {run.info.run_id: run.info.run_name for run in found}
    return [_listed(run, names) for run in found]


def _found(client: Any, experiment: str) -> list[Any]:
    """Return the newest runs of an experiment, the newest first; candidates count for nothing, however many there are.

    Raises:
        Exception: of any kind, if the store cannot be read.
    """
    held = client.get_experiment_by_name(experiment)
    found, page = list[Any](), None
    while held is not None and len(found) < MOST:
        newest = {"max_results": MOST, "order_by": ["start_time DESC"]}
        listed = client.search_runs([held.experiment_id], **newest, page_token=page)
        found += [run for run in listed if "candidate" not in run.data.params]
        page = listed.token
        if not page:
            break
    return found[:MOST]


def _listed(run: Any, names: dict[str, str]) -> ListedRun:
    params, metrics, tags = run.data.params, run.data.metrics, run.data.tags
    return ListedRun(
        id=run.info.run_id,
        name=run.info.run_name,
        place=f"experiments/{run.info.experiment_id}/runs/{run.info.run_id}",
        part_of=names.get(tags.get("mlflow.parentRunId", ""), ""),
        task=params.get("task", ""),
        lm=params.get("lm.name", ""),
        score=metrics.get("score", metrics.get("after_score")),
        simulated=tags.get("simulated") == "true",
        began=datetime.fromtimestamp(run.info.start_time / 1000, timezone.utc),
        state=run.info.status.lower(),
    )
