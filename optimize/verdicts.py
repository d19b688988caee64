"""The metric as compilation needs it: the score of a prediction, and whether it is good enough to learn from."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import dspy

from ..common.text import text_or_none
from ..evaluation.record_scores import ScoreFunction, metric_name
from ..evaluation.records import question_id
from ..lm.failure import Failure
from ..metrics import Metric, list_scores
from ..programs.demonstrations import TraceStep, as_found, noted, select_demonstrations
from .demonstrations import is_right, is_sound, shortened
from .feedback import feedback

ROUNDING = 1e-9  # error of a score that is a sum


class MetricFaultError(KeyboardInterrupt):
    """Ends an optimizer as Ctrl-C does; an ordinary `Exception` would count as one more wrong answer."""


class _Judged(NamedTuple):
    """The metric's score for a prediction, whether that is good enough, and the metric's own words, if any."""

    score: float
    accepted: bool
    said: str


class Verdicts:
    """Asks the metric for scores and verdicts, and counts what was asked, accepted and failed.

    Teleprompters call a metric with a trace before they take demonstrations from it, and without one when they compare
    candidates. With a trace it gives the verdict, yes or no, and only the calls that make good demonstrations are left
    in the trace. Without one it gives the score: so the candidate with the best mean score is found, not the one with
    most answers above a threshold. A failed prediction scores 0 and is never good enough. Where a user's metric
    gives a number for a verdict, only a full score is a yes: an F1 of .05 is no success.
    Safe to call from several threads.

    Attributes:
        sought: whether any of them came with a trace to learn from.
    """

    def __init__(self, metric: ScoreFunction):
        self.metric = metric
        self.__name__ = metric_name(metric)
        self.asked = self.accepted = 0
        self.best, self.sought = 0.0, False
        self.failures: Counter[str] = Counter()
        self._shown: Counter[tuple[str, str]] = Counter()  # steps left in traces, by predictor and kind
        self._lock = threading.Lock()

    def __call__(self, example: dspy.Example, prediction: dspy.Prediction | None, trace: Any = None) -> float | bool:
        """Return the prediction's score; with a trace, whether it is good enough."""
        judged = self._judge(example, prediction, trace)
        return judged.score if trace is None else judged.accepted

    def accepts(self, example: dspy.Example, prediction: dspy.Prediction) -> bool:
        """Return whether the prediction is good enough."""
        return self._judge(example, prediction, []).accepted

    def told(self) -> str:
        """Return what was judged, in words."""
        failed = ", ".join(f"{count} {cause}" for cause, count in self.failures.most_common())
        return (
            f"of {self.asked} predictions the metric {self.__name__!r} accepted {self.accepted}"
            f"{f', and {self.failures.total()} failed ({failed})' if failed else ''}. It accepts by True or 1."
        )

    def _judge(self, example: dspy.Example, prediction: Any, trace: Any, *, verdict: bool = False) -> _Judged:
        """Return what the metric gives; without a trace its score, and where ``verdict`` its verdict as well."""
        failure: Failure | None = prediction.get("failure") if prediction is not None else None
        failed = prediction is None or failure is not None
        judged = _Judged(0.0, False, "") if failed else self._ask_metric(example, prediction, trace)
        if verdict and not isinstance(self.metric, Metric) and 0 < judged.score < 1:
            judged = judged._replace(accepted=self._ask_metric(example, prediction, []).accepted)
        with self._lock:
            self.asked += 1
            self.best, self.sought = max(self.best, judged.score), self.sought or trace is not None
            self.accepted += judged.accepted
            if failed:
                self.failures["error" if failure is None else failure.cause] += 1
            if judged.accepted and trace:
                self._leave_the_best(trace, example, prediction)
        return judged

    def _leave_the_best(self, trace: list[TraceStep], example: dspy.Example, prediction: dspy.Prediction) -> None:
        """Leave one sound call of each predictor in a trace, of the kind that was left least often so far.

        DSPy takes one call of each predictor from each question, at random. Some predictors are called many times in
        one question, such as paragraph review; DSPy might then show three rejections and nothing else.
        """
        calls: dict[str, list[TraceStep]] = {}
        for step in map(shortened, self.sound(trace, example, prediction)):
            calls.setdefault(step[0].stage, []).append(step)  # a predictor's own name, the same in all copies
        trace[:] = []
        for predictor, steps in calls.items():
            trace.append(min(steps, key=lambda step: self._shown[predictor, noted(step).kind]))
            self._shown[predictor, noted(trace[-1]).kind] += 1

    def sound(self, trace: Sequence[TraceStep], example: dspy.Example, prediction: dspy.Prediction) -> list[TraceStep]:
        """Return the steps of a well answered question that an LM may learn from, each as it turned out.

        They contradict neither the example with its gold passages, nor the passages that they were shown.
        """
        right = [step for step in trace if self._answers_right(step, example)]
        steps = [step for step in select_demonstrations(right, example) if is_sound(step, example)]
        tree = prediction.get("tree")
        return steps if tree is None else [as_found(step, tree, example) for step in steps]

    def with_feedback(
        self,
        example: dspy.Example,
        prediction: dspy.Prediction | None,
        trace: Any = None,
        predictor: str | None = None,
        predictor_trace: Any = None,
    ) -> dspy.Prediction:
        """Return the score and the words for the LM that reflects on it, as GEPA takes them.

        The words end with the metric's own, if it returns ``dspy.Prediction(score=..., feedback=...)``. GEPA asks for
        words on one predictor, by a call of it (``predictor_trace``). ``accepted`` tells whether the answer is good
        enough.
        """
        judged = self._judge(example, prediction, None, verdict=True)  # a trace would lose steps
        step, full = next(iter(predictor_trace or ()), None), judged.score >= 1 - ROUNDING
        words = [feedback(example, prediction, judged.accepted, step, full=full), judged.said]
        if judged.score > 0 and not full:
            words.insert(1, f"Its score is {judged.score:.2f}, of at most 1.")
        return dspy.Prediction(score=judged.score, accepted=judged.accepted, feedback="\n".join(filter(None, words)))

    def _ask_metric(self, example: dspy.Example, prediction: Any, trace: Any) -> _Judged:
        try:
            given = self.metric(example, prediction, trace)
            if not given <= 1 + ROUNDING:
                raise ValueError(f"it gave {float(given)}, and a full score is 1")
            score = min(float(given), 1.0)
            accepted = bool(given >= 1 - ROUNDING)
            if trace is None and isinstance(self.metric, Metric):
                accepted = self.metric.accepts(score, example)
            return _Judged(score, accepted, str(getattr(given, "feedback", None) or ""))
        except Exception as error:
            raise MetricFaultError(
                f"The metric {self.__name__!r} cannot judge the answer to question {question_id(example)!r}: "
                f"{type(error).__name__}: {error}. In compilation it is called with (example, prediction, trace)."
            ) from error

    def _answers_right(self, step: TraceStep, example: Any) -> bool:
        """Return False for a step that answers the whole question wrongly, though the program got it right later."""
        _, inputs, reply = step
        answer = text_or_none(reply.get("answer")) or text_or_none(reply.get("supported_answer"))
        if answer is None or inputs.get("question") != example.question:
            return True
        of_one = example.get("answer_style") == "short" and not example.get("needed")
        if of_one and not is_right(answer, list(example.get("answers") or [answer])):
            return False
        if example.get("needed") and not reply.get("answer"):  # a path proves a part of a list
            return list_scores(answer, example.needed)["precision"] == 1
        if not isinstance(self.metric, Metric) or not self.metric.grades_answers:  # a step alone cites nothing
            return True
        return self.metric.verdict(example, dspy.Prediction(answer=answer))
