"""Tracking with MLflow: one parent run for a compilation, nested runs for its candidates, a trace for each question.

MLflow is imported only when something is tracked: the import takes four seconds. By default evaluated questions are
traced and compilation is not: its thousands of questions would fill the store.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from ..common.errors import QuestreeError
from ..common.secrets import without_secrets
from ..lm.failure import first_line
from ..programs import Program
from ..programs.prompts import RenderedPrompt, rendered_prompts
from .evaluation import Evaluation
from .genai import expectations_of
from .kept_run import match_run
from .run_file import writing
from .traces import traced
from .tracking_store import (
    PROCESS,
    bound_mlflow,
    check_store,
    end_dead_runs,
    process_tags,
    sqlite_file,
    store_in_use,
    without_password,
)

RUN = "run"
"""The name of the artifact that holds a run's file of runs; for a compilation's evaluations it has a prefix."""

_LONGEST_NAME = 250  # characters of the name of a figure
_LONGEST = 500  # characters of a parameter: what every MLflow store takes
_FIELD = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Tracking:
    """Where runs are tracked, and what is traced.

    Attributes:
        uri: any MLflow tracking URI, empty for none. The files of an SQLite store lie in ``mlartifacts`` beside it.
        experiment: the experiment's name; it is made if it does not exist.
        traces: whether each evaluated question becomes a trace.
        traces_of_compilation: whether each question that is asked in compilation becomes one.
    """

    uri: str = "sqlite:///mlflow.db"
    experiment: str = "questree"
    traces: bool = True
    traces_of_compilation: bool = False

    @contextmanager
    def run(self, name: str, params: Mapping[str, Any], *, simulated: bool = False) -> Iterator[TrackedRun]:
        """Open a run, nested in the open one if there is one; it is marked as failed if the block raises.

        The first run also marks as killed the runs that killed processes left open in this experiment.

        Args:
            name: shown in MLflow.
            params: nested ones become ``outer.inner``.
            simulated: a tag of the run, and of its nested ones.

        Raises:
            QuestreeError: if the store cannot be used.
        """
        if not self.uri:
            yield UNTRACKED
            return
        bound_mlflow()
        import mlflow

        tags = {"simulated": str(simulated).lower(), **process_tags()}
        with store_in_use(self.uri):
            outer = mlflow.active_run()
            try:
                check_store(self.uri)
                experiment = self._experiment()
                if outer is None:
                    end_dead_runs(experiment)
                run = mlflow.start_run(experiment_id=experiment, run_name=name, nested=outer is not None, tags=tags)
            except Exception as error:
                away = "no server answers there" if "Max retries exceeded" in str(error) else ""
                told = f"Cannot track to {without_password(self.uri)}: {away or _reason(error)}."
                if outer is None or PROCESS not in outer.data.tags:  # nothing is paid yet: refuse
                    raise QuestreeError(f"{told} Check the tracking URI, or run without tracking.") from None
                logger.warning("%s %s is not tracked.", told, name)
                yield UNTRACKED
                return
            tracked, status = TrackedRun(run.info.run_id, experiment, self, tags, params), "FAILED"
            try:
                tracked.params(params)
                yield tracked
                status = "FAILED" if tracked._lost else "FINISHED"
            finally:
                with suppress(mlflow.MlflowException, OSError):
                    mlflow.end_run(status)

    def _experiment(self) -> str:
        """Return the id of the experiment; make it if it does not exist."""
        import mlflow

        if (found := mlflow.get_experiment_by_name(self.experiment)) is None:
            file = sqlite_file(self.uri)
            place = None if file is None else (file.resolve().parent / "mlartifacts").as_uri()
            try:
                return str(mlflow.create_experiment(self.experiment, artifact_location=place))
            except mlflow.MlflowException:
                found = mlflow.get_experiment_by_name(self.experiment)
                if found is None:
                    raise  # otherwise another thread or process has just made it
        if found.lifecycle_stage == "deleted":
            raise QuestreeError(
                f"the experiment {self.experiment!r} is deleted there; name another one (--experiment), or restore it "
                f"(mlflow experiments restore --experiment-id {found.experiment_id}, with MLFLOW_TRACKING_URI set)"
            )
        return str(found.experiment_id)


def _tolerant(log: Callable[..., T]) -> Callable[..., T | None]:
    """Wrap a method of a run so that the work goes on where the store fails, as `TrackedRun.write` does."""

    @wraps(log)
    def written(run: TrackedRun, *given: Any, **how: Any) -> T | None:
        return run.write(partial(log, run, *given, **how))

    return written


@dataclass(frozen=True)
class TrackedRun:
    """An open run. Get one from `Tracking.run`.

    Attributes:
        id: of the run in its store; empty for one that writes nothing.
    """

    id: str
    experiment: str
    tracking: Tracking
    tags: Mapping[str, str]
    facts: Mapping[str, Any] = field(default_factory=dict)
    _traces: dict[str, str] = field(default_factory=dict)
    _lost: list[str] = field(default_factory=list)

    @property
    def on(self) -> bool:
        """Return whether anything is tracked."""
        return bool(self.id)

    def write(self, log: Callable[..., T], *given: Any) -> T | None:
        """Write to the store, and return what it answers.

        The tracked work is paid for: if the store cannot be written any more, a warning says so, and the work goes on.
        After that, only the end of the run is written.
        """
        if self._lost or not self.on:
            return None
        import mlflow

        try:
            return log(*given)
        except (mlflow.MlflowException, OSError) as error:
            if not self._lost:  # otherwise an inner call has warned already
                said = "The run %s is not tracked any further: %s. The work goes on, and its result is whole."
                logger.warning(said, self.id, _reason(error))
            self._lost.append(self.id)
            return None

    @_tolerant
    def params(self, params: Mapping[str, Any]) -> None:
        """Log parameters."""
        import mlflow

        mlflow.log_params(dict(flat_params(params)))

    @_tolerant
    def figures(self, figures: Mapping[str, float]) -> None:
        """Log numbers.

        In a name, MLflow takes letters, digits, ``_``, ``-``, ``.`` and spaces; any other character becomes a ``-``.
        """
        import mlflow

        named = {re.sub(r"[^\w. -]", "-", name)[:_LONGEST_NAME]: value for name, value in figures.items()}
        mlflow.log_metrics(named)

    @_tolerant
    def evaluation(self, evaluation: Evaluation, task: str = "", prefix: str = "") -> None:
        """Log the figures of an evaluation, its questions, and the scores of each trace.

        The questions become a table, a file of runs without what was asked of the LM and, with their gold answers, an
        input of the run; a tag says if that LM wrote some of them. ``prefix`` stands before the name of each figure, of
        the table and of the file's folder.
        """
        import mlflow
        from mlflow.data.pandas_dataset import from_pandas
        from pandas import DataFrame

        self.figures({f"{prefix}{name}": value for name, value in evaluation.figures().items()})
        if evaluation.self_written:
            mlflow.set_tag("self_written", "true")
        rows = DataFrame(evaluation.table(), dtype=object)
        mlflow.log_table(rows, f"{prefix}questions.json")
        with TemporaryDirectory() as folder:
            _write_file(Path(folder), without_secrets(dict(self.facts)), evaluation)
            mlflow.log_artifacts(folder, f"{prefix}{RUN}")
        mlflow.log_input(
            from_pandas(rows[["id", "question", "answers"]], name=task or "questions"), context="evaluation"
        )
        try:
            self._judge(evaluation)
        except mlflow.MlflowException as error:  # the run's figures and the traces themselves are there
            logger.warning("The scores of the questions could not be written to their traces: %s", first_line(error))

    def _judge(self, evaluation: Evaluation) -> None:
        """Write the gold side and the scores of each traced question to its trace."""
        import mlflow
        from mlflow.entities import AssessmentSource

        judged = [(self._traces.pop(one.id), one) for one in evaluation.records if one.id in self._traces]
        if judged:  # one that is still on its way takes no assessment; to wait for none takes a second
            mlflow.flush_trace_async_logging()
        by = AssessmentSource(source_type="CODE", source_id="questree")
        about = {"simulated": str(evaluation.simulated).lower()}
        for trace, record in judged:
            for name, value in expectations_of(record.example).items():
                mlflow.log_expectation(trace_id=trace, name=name, value=value, source=by)
            for name, value in record.scores.items():
                mlflow.log_feedback(trace_id=trace, name=name, value=value, source=by, metadata=about)

    def prompts(self, program: Program) -> None:
        """Put the prompt of each predictor into MLflow's registry, unless it is the latest there, and link it.

        If the store has no registry of prompts, or a prompt is too long for it, a warning says so.
        """
        if self._lost or not self.on:
            return
        import mlflow

        try:
            for prompt in rendered_prompts(program):
                _register(self.id, f"{program.name}.{prompt.predictor}", prompt)
        except mlflow.MlflowException as error:
            logger.warning("The prompts of %s could not be registered: %s", program.name, first_line(error))

    @_tolerant
    def candidate(self, number: int, figures: Mapping[str, float], state: Mapping[str, Any]) -> None:
        """Log a candidate of an optimizer as a nested run, from any thread.

        Args:
            number: from 0, in the order in which candidates were scored.
        """
        import mlflow

        name, tags = f"candidate {number}", dict(self.tags)
        with mlflow.start_run(
            experiment_id=self.experiment, run_name=name, nested=True, parent_run_id=self.id, tags=tags
        ):
            mlflow.log_params({"candidate": number, "demonstrations": sum(len(one["demos"]) for one in state.values())})
            mlflow.log_metrics(dict(figures))
            mlflow.log_dict(without_secrets(dict(state)), "program.json")

    @_tolerant
    def folder(self, folder: Path, name: str) -> str | None:
        """Log a folder as an artifact; return the address that `load` takes, None if the store does not take it."""
        import mlflow

        mlflow.log_artifacts(str(folder), name)
        return f"runs:/{self.id}/{name}"

    @_tolerant
    def texts(self, files: Mapping[str, str]) -> None:
        """Log texts as files of these names."""
        import mlflow

        for name, text in files.items():
            mlflow.log_text(without_secrets(text), name)

    def traces(self, *, compilation: bool = False) -> AbstractContextManager[None]:
        """Return a context in which each question becomes a trace of this run, if the tracking asks for traces."""
        wanted = self.tracking.traces_of_compilation if compilation else self.tracking.traces
        return traced(self.id, self.experiment, self._traces) if self.on and wanted else nullcontext()


def _reason(error: Exception) -> str:
    """Return the line of an error that says what is wrong; SQLAlchemy may put a line in brackets before it."""
    return first_line(Exception(re.sub(r"^\(raised as .*\)\n", "", str(error)) or error)).rstrip(".")


OFF = Tracking(uri="")
"""A tracking whose runs do nothing, and which needs no MLflow."""
UNTRACKED = TrackedRun("", "", OFF, {})


def _register(run: str, name: str, prompt: RenderedPrompt) -> None:
    """Put a prompt into the registry, unless it is the latest of its name, and link its version to the run."""
    import mlflow

    template = [{"role": role, "content": without_secrets(text)} for role, text in prompt.messages]
    name = re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)  # MLflow takes no other characters
    template[-1]["content"] = _FIELD.sub(r"{{\1}}", template[-1]["content"])  # the form of MLflow's placeholders
    client = mlflow.MlflowClient()
    # mlflow.genai's function would link whatever it loads to the run
    latest = client.load_prompt(f"prompts:/{name}@latest", allow_missing=True, cache_ttl_seconds=0)
    if latest is None or latest.template != template:
        latest = mlflow.genai.register_prompt(name, template, tags={"signature": prompt.signature})
    client.link_prompt_version_to_run(run, latest)


def _write_file(folder: Path, about: Mapping[str, Any], evaluation: Evaluation) -> None:
    """Write a file of the run, without steps; whatever reads runs can read it."""
    with writing(folder, "evaluation", shared=True, durable=False) as file:
        run = match_run(file, str(about.get("program")), about)
        for record in evaluation.records:
            run.append(record)
        names, ids = [evaluation.metric, *evaluation.others], [record.id for record in evaluation.records]
        run.end(names, evaluation.seed, ids)


def flat_params(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield parameters as texts, nested ones as ``outer.inner``."""
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from flat_params(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", without_secrets(str(value))[:_LONGEST]
