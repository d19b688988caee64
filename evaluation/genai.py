"""For MLflow's own evaluation of LMs (``mlflow.genai``): tasks as its data sets, metrics as its scorers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dspy

from ..common.errors import QuestreeError
from ..data import Task, load_task
from ..metrics import metric as metric_named
from ..retrieval import Passage
from .record_scores import ScoreFunction, checked_metric, metric_name

if TYPE_CHECKING:
    from mlflow.genai.datasets import EvaluationDataset
    from mlflow.genai.scorers import Scorer

_GOLD = ("needed", "answers_are_regex", "gold_passages", "gold_titles", "gold_sentences")
_PASSAGES = ("references", "passages", "seen")


def expectations_of(example: dspy.Example) -> dict[str, Any]:
    """Return the gold side of an example as MLflow's scorers and judges know it.

    ``answers`` holds every gold answer. ``expected_response``, the name that MLflow's judges want, is the first; there
    is none where the answers are regular expressions or a list, or where there are none.
    """
    answers = list(example.answers)
    gold = {name: value for name in _GOLD if (value := example.get(name))}
    several = gold.get("answers_are_regex") or gold.get("needed")
    expected = {} if several or not answers else {"expected_response": answers[0]}
    return {**expected, "answers": answers, **{name: list(v) if v is not True else v for name, v in gold.items()}}


def mlflow_scorer(metric: str | ScoreFunction) -> Scorer:
    """Return a metric as a scorer for ``mlflow.genai.evaluate``.

    It scores a program's prediction, a served model's reply, a trace's outputs, or a text that is the answer.

    Args:
        metric: by name, as `questree.metrics.metric` takes it; or ``(example, prediction, trace=None)``.

    Raises:
        QuestreeError: there is no such metric, or it is no function.
    """
    from mlflow.genai.scorers import scorer

    grade = checked_metric(metric_named(metric) if isinstance(metric, str) else metric)
    name = metric_name(grade)

    def score(inputs: dict[str, Any], outputs: Any, expectations: dict[str, Any] | None = None) -> float:
        return float(grade(_example(name, inputs, expectations or {}), _prediction(outputs)))

    made: Scorer = scorer(score, name=name)
    return made


def mlflow_dataset(task: Task | str, split: str = "dev", *, name: str | None = None) -> EvaluationDataset:
    """Return the questions of a split as an evaluation data set of MLflow, for ``mlflow.genai.evaluate``.

    It is made in MLflow's current store and experiment; if it is there already, missing questions are added. A record
    has the program's inputs, and as expectations the gold answers and passages.

    Args:
        task: a task, or its name.
        split: train, dev or test.
        name: of the data set; ``TASK-SPLIT`` where None.

    Raises:
        QuestreeError: there is no such task or split, or the store holds no data sets, as folders of files do not.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.genai.datasets import create_dataset, search_datasets

    task = load_task(task) if isinstance(task, str) else task
    records = [
        {"inputs": dict(one.inputs()), "expectations": expectations_of(one), "tags": {"id": str(one.id)}}
        for one in task.examples(split)
    ]
    name = name or f"{task.name}-{split}"
    try:
        found = search_datasets(filter_string=f"name = '{name}'", max_results=1)
        dataset = found[0] if found else create_dataset(name, tags={"task": task.name, "split": split})
        return dataset.merge_records(records)
    except MlflowException as error:
        raise QuestreeError(f"MLflow's store takes no evaluation data set {name!r}: {error}") from error


def _example(name: str, inputs: Mapping[str, Any], expectations: Mapping[str, Any]) -> dspy.Example:
    """Return a row of MLflow's evaluation as an example of ours."""
    answers = expectations.get("answers") or expectations.get("expected_response")
    if not answers and expectations.get("answers") is None:
        raise QuestreeError(
            f"The scorer {name!r} needs gold answers as expectations: 'answers' or 'expected_response'."
        )
    answers = [answers] if isinstance(answers, str) else list(answers or ())
    return dspy.Example(**{**inputs, **expectations, "answers": answers})


def _prediction(outputs: Any) -> dspy.Prediction:
    """Return an answer as a prediction of ours."""
    if isinstance(outputs, list) and len(outputs) == 1:  # a served model answers rows
        [outputs] = outputs
    if isinstance(outputs, dspy.Prediction):
        return outputs
    if isinstance(outputs, str):
        return dspy.Prediction(answer=outputs)
    if not isinstance(outputs, Mapping):
        raise QuestreeError(f"Outputs of the type {type(outputs).__name__} cannot be scored: give a program's own.")
    passages = {name: outputs[name] for name in _PASSAGES if outputs.get(name)}
    read = {name: [Passage.model_validate(one) for one in found] for name, found in passages.items()}
    return dspy.Prediction(**{**outputs, **read})
