"""Traces in MLflow, one for each question: the program, its predictors, its searches and its LM calls are spans.

MLflow's own autologging would change DSPy's global configuration, which only one thread may do, and would keep each
prompt three times. This one listens in the caller's context only. Of an object that JSON does not know it writes only
the type, because the object may hold a key; and it removes all known keys from every text.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.callback import ACTIVE_CALL_ID, BaseCallback

from ..common.secrets import without_secrets
from ..lm.failure import first_line, remember_lm
from ..lm.options import options_of
from ..lm.scope import scope, scoped
from ..retrieval import Passage
from .records import plain

logger = logging.getLogger(__name__)

_LEFT_OUT = {"lm", "watch", "config", "demos", "prompt"}  # objects, and what the LM call below shows


@dataclass
class Traced:
    """A question that may be traced.

    Attributes:
        place: where its trace stands in MLflow's pages, once it has begun (`Record.trace`).
    """

    id: str
    place: str = ""


@contextmanager
def about(question_id: str) -> Iterator[Traced]:
    """Note the trace that begins in the block under the id of its question."""
    question = Traced(question_id)
    with scoped(traced=question):
        yield question


@contextmanager
def traced(run_id: str, experiment_id: str, traces: dict[str, str]) -> Iterator[None]:
    """Write DSPy's calls inside the block as traces of a run; MLflow's own autologging is off meanwhile.

    MLflow sends them from a thread of its own, which may go on for a moment after the block.

    Args:
        traces: gets the id of each question's trace, by the id of the question (`about`).
    """
    # both at once would write each call twice, and each span would stand in the other's trace
    others = [one for one in dspy.settings.callbacks if not type(one).__module__.startswith("mlflow.")]
    with dspy.context(callbacks=[*others, TraceWriter(run_id, experiment_id, traces)]):
        yield


def judge(place: str, helpful: bool, note: str) -> None:
    """Write a user's feedback on an answer to its trace (`Traced.place`); do nothing where there is no trace."""
    if not place:
        return
    import mlflow
    from mlflow.entities import AssessmentSource

    mlflow.flush_trace_async_logging()  # a trace that is still on its way takes no feedback
    by = AssessmentSource(source_type="HUMAN", source_id="questree serve")
    id = place.rpartition("/")[2]
    said: dict[str, Any] = {"name": "helpful", "value": helpful, "rationale": without_secrets(note) or None}
    try:
        mlflow.log_feedback(trace_id=id, source=by, **said)
    except mlflow.MlflowException as error:  # the feedback is also kept with the question
        logger.warning("What was said of an answer could not be written to its trace: %s", first_line(error))


class TraceWriter(BaseCallback):
    """Writes a span for each module and each LM call; a module that no other module called begins a trace."""

    def __init__(self, run_id: str, experiment_id: str, traces: dict[str, str]):
        self._run_id, self._experiment_id, self._traces = run_id, experiment_id, traces
        self._spans: dict[str, Any] = {}
        self._lms: dict[str, dspy.BaseLM] = {}
        self._lock = threading.Lock()

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Open a span for a program, a predictor or a search."""
        kwargs = inputs.get("kwargs", inputs)
        shown = {key: value for key, value in kwargs.items() if key not in _LEFT_OUT}
        if isinstance(instance, dspy.Retrieve):
            self._open(call_id, "search", "RETRIEVER", shown)
            return
        predictor = isinstance(instance, dspy.Predict)
        self._open(call_id, instance.signature.__name__ if predictor else type(instance).__name__, "CHAIN", shown)

    def on_module_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Close the span of a program, a predictor or a search, which has answered or raised."""
        if isinstance(outputs, dspy.Prediction):
            outputs = dict(outputs)
        elif isinstance(outputs, list) and all(isinstance(one, Passage) for one in outputs):
            outputs = [_document(passage) for passage in outputs]
        self._close(call_id, outputs, exception)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Open a span for an LM call."""
        remember_lm(instance)
        self._lms[call_id] = instance
        traits = {name: one for name, one in options_of(instance.kwargs).items() if one is not None}
        self._open(call_id, str(instance.model), "CHAT_MODEL", {"messages": inputs.get("messages")}, traits)

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Close the span of an LM call, with the tokens that it took."""
        history = self._lms.pop(call_id).history
        usage = (history[-1].get("usage") or {}) if history and exception is None else {}
        self._close(call_id, outputs, exception, _token_usage(usage))

    def _open(
        self, call_id: str, name: str, kind: str, inputs: dict[str, Any], attributes: dict[str, Any] | None = None
    ) -> None:
        import mlflow
        from mlflow.entities.span import NoOpSpan

        with self._lock:
            parent = self._spans.get(ACTIVE_CALL_ID.get() or "")
        given: dict[str, Any] = {"span_type": kind, "inputs": without_secrets(plain(inputs)), "attributes": attributes}
        place: dict[str, Any] = {"parent_span": parent} if parent else {"experiment_id": self._experiment_id}
        if not parent:
            place["metadata"] = {"mlflow.sourceRun": self._run_id}
        span = mlflow.start_span_no_context(name, **given, **place)
        with self._lock:
            self._spans[call_id] = span
            kept = parent is None and not isinstance(span, NoOpSpan)  # the span belongs to a trace that is not kept
            question: Traced | None = scope().traced
            if kept and question is not None:
                self._traces[question.id] = span.trace_id
                question.place = f"experiments/{self._experiment_id}/traces/{span.trace_id}"

    def _close(
        self, call_id: str, outputs: Any, exception: BaseException | None, attributes: dict[str, Any] | None = None
    ) -> None:
        with self._lock:
            span = self._spans.pop(call_id, None)
        if span is None:
            return
        status = "OK"
        if exception is not None:
            error = without_secrets(f"{type(exception).__name__}: {exception}")[:500]
            attributes, status = {**(attributes or {}), "error": error}, "ERROR"
        span.end(outputs=without_secrets(plain(outputs)), attributes=attributes, status=status)


def _document(passage: Passage) -> dict[str, Any]:
    """Return a passage in the form that MLflow's judges of retrieval read."""
    where: dict[str, Any] = {"doc_uri": passage.id, "title": passage.title, "score": passage.score}
    where |= passage.model_dump(include={"source", "start", "end"}, exclude_defaults=True)
    return {"page_content": passage.text, "metadata": where, "id": passage.id}


def _token_usage(usage: dict[str, Any]) -> dict[str, Any] | None:
    if not usage:
        return None
    given, taken = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    return {"mlflow.chat.tokenUsage": {"input_tokens": given, "output_tokens": taken, "total_tokens": given + taken}}
