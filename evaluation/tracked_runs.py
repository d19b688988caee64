"""The runs of an MLflow store: the newest of an experiment as a list, and each with the questions that it asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from ..common.errors import QuestreeError
from ..lm.failure import first_line
from .feedback_questions import UserFeedback
from .tracking import RUN, Tracking
from .tracking_store import check_exists, without_password

_YES_NO = {"true": True, "yes": True, "false": False, "no": False}

MOST = 200
"""Runs in a list."""


FIGURES = ("score", "score_low", "score_high", "grounded", "questions", "lm_calls_a_question", "cost")


class ListedRun(NamedTuple):
    """A run of an MLflow store with the fields that a list shows.

    Attributes:
        place: its path in MLflow's pages.
        part_of: the name of the run that it is nested in; empty if it is in none, or in an older one.
        figures: score, its ends, grounded score, questions, LM calls and cost of the program, after compilation if
            there was one; as many as are known.
        state: as MLflow calls it, in small letters.
    """

    id: str
    name: str
    place: str
    part_of: str
    task: str
    lm: str
    program: str
    figures: Mapping[str, float]
    simulated: bool
    began: datetime
    state: str
    self_written: bool


class TrackedFile(NamedTuple):
    """A file of runs among the artifacts of a run: its name (of a compilation ``before``, ``after``), run and path."""

    name: str
    id: str
    path: str


class OpenedRun(NamedTuple):
    """A run of an MLflow store, with the files of the run itself, or else of the runs nested in it."""

    listed: ListedRun
    figures: Mapping[str, float]
    params: Mapping[str, str]
    kept: tuple[TrackedFile, ...]


def tracked_runs(tracking: Tracking) -> list[ListedRun]:
    """Return the runs of a store's experiment, the newest first."""
    with _open_client(tracking) as client:
        held = client.get_experiment_by_name(tracking.experiment)
        found = _whole_runs(client, held.experiment_id, "DESC") if held else []
    names = {run.info.run_id: run.info.run_name for run in found}
    return [_listed(run, names) for run in found]


def tracked_run(tracking: Tracking, id: str) -> OpenedRun:
    """Return a run of a store's experiment."""
    with _open_client(tracking) as client:
        run, held = client.get_run(id), client.get_experiment_by_name(tracking.experiment)
        if held is None or run.info.experiment_id != held.experiment_id:
            raise QuestreeError(f"The experiment {tracking.experiment} has no run {id}.")
        kept = list(_kept(client, run))
        if not kept:
            nested = _whole_runs(client, held.experiment_id, "ASC", f" and tags.`mlflow.parentRunId` = '{id}'")
            kept = [one for run in nested for one in _kept(client, run) if one.path == RUN]
    return OpenedRun(_listed(run, {}), run.data.metrics, run.data.params, tuple(kept))


def fetch_kept(tracking: Tracking, kept: Sequence[TrackedFile], folder: Path) -> dict[str, Path]:
    """Fetch the files into a folder; return their paths by unique names."""
    places: dict[str, Path] = {}
    with _open_client(tracking) as client:
        for number, (name, id, path) in enumerate(kept):
            (folder / str(number)).mkdir()
            unique = f"{name} {id}" if name in places else name
            places[unique] = Path(client.download_artifacts(id, path, str(folder / str(number))))
    return places


def assessments(tracking: Tracking, traces: Iterable[str]) -> dict[str, UserFeedback]:
    """Return people's feedback from MLflow's pages, by each trace's place; assessments by programs are left out.

    Any yes or no counts, with its rationale, and any expectation that is a text, as the right answer.

    Raises:
        QuestreeError: if the store cannot be read.
    """
    found = dict[str, UserFeedback]()
    with _open_client(tracking) as client:
        for place in traces:
            for one in _assessments(client, place.rpartition("/")[2]):
                said, value = found.get(place, UserFeedback()), str(one.value).strip()
                if one.expectation is not None:
                    found[place] = said._replace(right=value)
                elif value.lower() in _YES_NO:
                    found[place] = said._replace(helpful=_YES_NO[value.lower()], note=one.rationale or "")
    return found


def _assessments(client: Any, trace: str) -> list[Any]:
    from mlflow import MlflowException

    try:
        every = client.get_trace(trace, display=False).info.assessments or []
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":  # it was deleted, or is in another store
            raise
        return []
    return [one for one in every if one.source.source_type == "HUMAN" and one.valid is not False]


@contextmanager
def _open_client(tracking: Tracking) -> Iterator[Any]:
    """Give a client of the store; any error of it in the block becomes a `QuestreeError`."""
    import mlflow

    check_exists(tracking.uri)
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    try:
        yield mlflow.MlflowClient(tracking.uri)
    except QuestreeError:
        raise
    except Exception as error:  # MLflow does not wrap errors of a database
        uri = without_password(tracking.uri)
        raise QuestreeError(f"The runs in {uri} cannot be read: {first_line(error).rstrip('.')}.") from error


def _kept(client: Any, run: Any) -> Iterator[TrackedFile]:
    """Yield the files of runs among the artifacts of a run."""
    there = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    for stage in ("", "before", "after"):
        path = f"{stage}_{RUN}" if stage else RUN
        if path in there:
            yield TrackedFile(stage or run.info.run_name, run.info.run_id, path)


def _whole_runs(client: Any, experiment: str, order: str, more: str = "") -> list[Any]:
    """Return the first runs of an experiment by their start, without an optimizer's candidates."""
    wanted = f"params.candidate IS NULL{more}"
    found: list[Any] = client.search_runs([experiment], wanted, max_results=MOST, order_by=[f"start_time {order}"])
    return found


def _listed(run: Any, names: dict[str, str]) -> ListedRun:
    params, metrics, tags = run.data.params, run.data.metrics, run.data.tags
    return ListedRun(
        id=run.info.run_id,
        name=run.info.run_name,
        place=f"experiments/{run.info.experiment_id}/runs/{run.info.run_id}",
        part_of=names.get(tags.get("mlflow.parentRunId", ""), ""),
        task=params.get("task", ""),
        lm=params.get("lm.name", ""),
        program=params.get("program", params.get("programs", "")),
        figures={one: metrics[last] for one in FIGURES for last in (one, f"after_{one}") if last in metrics},
        simulated=tags.get("simulated") == "true",
        began=datetime.fromtimestamp(run.info.start_time / 1000, timezone.utc),
        state=run.info.status.lower(),
        self_written=tags.get("self_written") == "true",
    )
