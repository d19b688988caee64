"""Metrics over records: which can be used, which stored scores are valid, and computing the missing ones.

No LM is needed, so any metric can be run over what was answered before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

import dspy

from ..common.errors import QuestreeError
from ..common.event_loop import no_coroutine
from ..lm.failure import CallFailedError
from ..metrics import METRICS, Gold
from .records import Record, example_fields, question_id
from .retrieval_measures import CONTEXTS, RECALL_AT, retrieval_scores

logger = logging.getLogger(__name__)

ScoreFunction = Callable[..., Any]
"""A metric as DSPy calls it: ``(example, prediction, trace=None)``; named by its ``name``, or as the function."""

_BY = ("", "title ")

_INTERVALS = ("score", "grounded", "answered", "difference", "declined", "not declined")

COLUMNS = {
    *("program", "questions", "score", "answered", "difference", "p", "failed", "calls", "words_in", "words_out"),
    *("rounds", "seconds", "cached", "cost", "simulated", "answered alone", "LM calls", "words in", "words out"),
    *(f"{one}_{end}" for one in _INTERVALS for end in ("low", "high")),
    *("declined", "not declined"),
    *("id", "question", "answers", "answer", "failure", "final_content", "references", "sources", "tokens", "kind"),
    *("hops", "documents", "documents a call", "evidences", "skc", "amp", "citation_precision", "citation_recall"),
    *("grounded", "rests_on", *(f"answer@{k}" for k in CONTEXTS), *(f"{by}chain@{k}" for by in _BY for k in CONTEXTS)),
    *("chain_cited", *(f"{by}chain cited" for by in _BY)),
    *(f"{by}{kind}@{k}" for by in _BY for kind in ("recall", "precision") for k in (*RECALL_AT, "all")),
    *(f"{by}{kind} kept" for by in _BY for kind in ("recall", "precision", "s-precision")),
}
"""The names of the other columns of results, which a metric of the same name would overwrite."""

JUDGE = "judge "
"""The prefix of the name of each metric that is an LM as a judge."""


class MetricError(QuestreeError):
    """A metric that raised an error or gave no number; the answer that it was to score is kept."""


def metric_name(metric: ScoreFunction) -> str:
    """Return the name under which a metric's scores are kept."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))


def checked_metrics(
    metrics: ScoreFunction | Sequence[ScoreFunction], examples: Iterable[dspy.Example]
) -> list[ScoreFunction]:
    """Return the metrics of a run as a list, and refuse those that cannot score its questions, before any is asked."""
    value: Any = metrics  # a user may give anything
    listed = [value] if callable(value) or isinstance(value, str) else list(value)
    if not listed:
        raise QuestreeError("There is no metric; give one at least, for example questree.metrics.metric('f1').")
    for place, metric in enumerate(listed):
        name = metric_name(checked_metric(metric))
        if METRICS.get(name, metric) != metric:
            raise QuestreeError(f"{name!r} is the name of a metric of ours: give yours another name.")
        if name in COLUMNS and (place or name != "score"):  # for the first metric, that column is its own score
            raise QuestreeError(f"{name!r} is the name of another column of the results: give another.")
        if any(name == metric_name(other) and metric != other for other in listed[:place]):
            raise QuestreeError(f"Two metrics are called {name!r}: give them different names.")
    checking = [metric for metric in listed if hasattr(metric, "check")]
    for example in examples if checking else ():
        question = f"The question {question_id(example)!r}"
        if example.get("answers") is None:
            raise QuestreeError(
                f"{question} has no gold answers, and {checking[0].name} goes by them: "
                "give it a list of texts as `answers`, an empty one where the corpus does not tell it."
            )
        for metric in checking:
            try:
                metric.check(Gold.of(example))
            except QuestreeError as error:
                raise QuestreeError(f"{question} cannot be scored: {error}") from error
    return listed


def checked_metric(value: Any) -> ScoreFunction:
    """Return a value if it can be a metric, and refuse it otherwise."""
    if not callable(value) or isinstance(value, type):
        raise QuestreeError(
            f"{value!r} is no metric: give a function (example, prediction, trace=None), or one of ours by "
            "questree.metrics.metric(NAME)."
        )
    checked: ScoreFunction = value
    return checked


def keeps_scores(metric: ScoreFunction) -> bool:
    """Return whether stored scores are reused: those of our metrics and of judges; other metrics may have changed."""
    return METRICS.get(metric_name(metric)) is metric or bool(judges_among([metric]))


def judges_among(metrics: Sequence[ScoreFunction]) -> dict[str, Any]:
    """Return the metrics that are an LM as a judge, by name; their scores cost money."""
    return {name: metric for metric in metrics if (name := metric_name(metric)).startswith(JUDGE)}


def scored_alone(records: Iterable[Record], names: Sequence[str]) -> tuple[Record, ...]:
    """Return the records with the scores by these metrics alone."""
    return tuple(
        record.model_copy(update={"scores": {name: record.scores[name] for name in names if name in record.scores}})
        for record in records
    )


def score(record: Record, example: dspy.Example, metrics: Sequence[ScoreFunction]) -> Record:
    """Return the record with the scores that it does not have yet; a failed question scores 0.

    Where the LM that a metric asks gives no usable reply, that score is missing, with a warning. The first metric is
    the run's score, so it must score every answer. The example may have more fields than the record.

    Raises:
        MetricError: if a metric raises another error or gives no finite number, if its LM does not take the key, or
            if the first one cannot score; names the metric and the question.
    """
    prediction, scores = record.prediction, dict(record.scores)
    for place, metric in enumerate(metrics):
        name = metric_name(metric)
        if name in scores:
            continue
        try:
            scores[name] = 0.0 if record.failure else _score(metric, name, example, prediction)
        except MetricError as error:
            cause = error.__cause__
            if place == 0 or not isinstance(cause, CallFailedError) or cause.failure.cause == "auth":
                raise
            logger.warning("%s This score is missing; the same command asks for it again.", error)
    return record.model_copy(update={"scores": scores})


def _score(metric: ScoreFunction, name: str, example: dspy.Example, prediction: dspy.Prediction) -> float:
    place = f"The metric {name!r} cannot score the answer to question {question_id(example)!r}"
    try:
        value = float(no_coroutine(metric(example, prediction), metric_name(metric)))
    except Exception as error:
        raise MetricError(f"{place}: {type(error).__name__}: {error}.") from error
    if not isfinite(value):
        raise MetricError(f"{place}: it gave {value}.")
    return value


_ASKED = {"question", "answer_style", "inputs"}


def current_record(record: Record, example: dspy.Example) -> Record | None:
    """Return the record with the example's gold side; None if the program's inputs have changed.

    If the gold side has changed, scores that may depend on it are removed. A judge's score was paid for, and depends
    on the answers alone.
    """
    fields = example_fields(example)
    changed = {name for name, value in fields.items() if getattr(record, name) != value}
    if changed & _ASKED:
        return None
    if not changed:
        return record
    fields["retrieval"] = retrieval_scores(record.prediction, example)
    fields["scores"] = {} if {"gold_answers", "needed"} & changed else by_judges(record)
    return record.model_copy(update=fields)


def by_judges(record: Record) -> dict[str, float]:
    """Return the scores that an LM gave as a judge, by its name as a metric."""
    return {name: score for name, score in record.scores.items() if name.startswith(JUDGE)}
