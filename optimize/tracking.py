"""Tracking with MLflow: one parent run a compile, candidates as nested runs, one question one trace.

MLflow is imported only when something is tracked: it takes four seconds. Traces are made of evaluations, not of
compilation, whose thousands of runs would fill the store; `Tracking` can be told otherwise.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dspy

from ..retrieval.errors import QuestreeError
from .evaluation import Evaluation
from .observers import Candidate
from .records import question_id

_LONGEST = 500  # characters of a parameter: what every MLflow store takes

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tracking:
    """Where runs are tracked, and what is traced.

    Attributes:
        uri: any MLflow tracking URI. Files of an SQLite store lie in ``mlartifacts`` beside it.
        experiment: made if need be.
        traces: whether each evaluated question is a trace.
        traces_of_compilation: whether each question asked in compilation is one too.
    """

    uri: str = "sqlite:///mlruns.db"
    experiment: str = "questree"
    traces: bool = True
    traces_of_compilation: bool = False

    @contextmanager
    def run(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> Iterator[TrackedRun]:
        """A run, nested in the one that is open if there is one; failed if what is inside raises.

        Args:
            name: shown in MLflow.
            params: nested ones become ``outer.inner``.
            tags: beside MLflow's own.

        Raises:
            QuestreeError: if the store cannot be had.
        """
        import mlflow

        before = mlflow.get_tracking_uri()
        with ExitStack() as stack:
            stack.callback(mlflow.set_tracking_uri, before)
            try:
                mlflow.set_tracking_uri(self.uri)
                experiment = self._experiment()
                run = stack.enter_context(
                    mlflow.start_run(
                        experiment_id=experiment, run_name=name, nested=mlflow.active_run() is not None, tags=dict(tags or {})
                    )
                )
            except Exception as error:
                raise QuestreeError(
                    f"Cannot track to {_without_password(self.uri)}: {_first_line(error)} "
                    "Check the tracking URI, or run without tracking."
                ) from error
            mlflow.log_params(_flat(params))
            yield TrackedRun(run.info.run_id, experiment, self)

    def _experiment(self) -> str:
        import mlflow

        found = mlflow.get_experiment_by_name(self.experiment)
        if found is None:
            return str(mlflow.create_experiment(self.experiment, artifact_location=self._artifact_location()))
        mlflow.set_experiment(experiment_id=found.experiment_id)
        return str(found.experiment_id)

    def _artifact_location(self) -> str | None:
        if not self.uri.startswith("sqlite:///"):
            return None
        return (Path(self.uri.removeprefix("sqlite:///")).resolve().parent / "mlartifacts").as_uri()


@dataclass(frozen=True)
class TrackedRun:
    """An open run."""

    id: str
    experiment: str
    tracking: Tracking

    def evaluation(self, evaluation: Evaluation, prefix: str = "") -> None:
        """Log its figures, each named with the prefix, and its questions as a table."""
        import mlflow

        mlflow.log_metrics({f"{prefix}{name}": value for name, value in evaluation.figures().items()})
        mlflow.log_table({key: [row[key] for row in evaluation.table()] for key in evaluation.table()[0]}, f"{prefix}questions.json")

    def figures(self, figures: Mapping[str, float]) -> None:
        """Log numbers."""
        import mlflow

        mlflow.log_metrics(dict(figures))

    def params(self, params: Mapping[str, Any]) -> None:
        """Log more parameters."""
        import mlflow

        mlflow.log_params(_flat(params))

    def folder(self, folder: Path, name: str) -> str:
        """Log a folder as an artifact; returns the address that `questree.load` takes."""
        import mlflow

        mlflow.log_artifacts(str(folder), name)
        return f"runs:/{self.id}/{name}"

    def candidate(self, candidate: Candidate, tags: Mapping[str, str]) -> None:
        """Log a candidate as a nested run."""
        import mlflow

        with mlflow.start_run(
            experiment_id=self.experiment, run_name=f"candidate {candidate.number}", nested=True, tags=dict(tags)
        ):
            mlflow.log_params({"candidate": candidate.number, "demonstrations": candidate.demonstrations})
            mlflow.log_metrics({"score": candidate.score, "questions": candidate.questions})
            mlflow.log_dict(candidate.state, "program.json")

    @contextmanager
    def traced(self, *, compilation: bool = False) -> Iterator[Around]:
        """DSPy's calls inside become traces of this run, where tracking wants them.

        Yields:
            what to enter around a question, in its thread: all that is called inside is one trace.
        """
        if not (self.tracking.traces_of_compilation if compilation else self.tracking.traces):
            yield _untraced
            return
        import mlflow

        mlflow.set_experiment(experiment_id=self.experiment)
        with _autolog(compilation):
            yield self._question
        mlflow.flush_trace_async_logging()

    @contextmanager
    def _question(self, example: dspy.Example) -> Iterator[None]:
        import mlflow

        with mlflow.start_span("question") as span:
            mlflow.update_current_trace(tags={"question_id": question_id(example)})
            span.set_inputs(dict(example.inputs()))
            yield
