"""Metrics by name, each a callable ``(example, prediction, trace=None)`` as DSPy takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..common.errors import QuestreeError
from ..common.names import unknown_name
from .answer_scores import (
    cover_exact_match,
    exact_match,
    f1,
    label_accuracy,
    pattern_in,
    pattern_match,
    rouge_l,
    yes_no_accuracy,
)


@dataclass(frozen=True)
class Gold:
    """What an answer is scored against: gold answers (or regular expressions) and the answer style."""

    answers: tuple[str, ...]
    are_regex: bool = False
    style: str = "short"

    @classmethod
    def of(cls, example: Any) -> Gold:
        """Return the gold side of a DSPy example, or of anything with these attributes."""
        return cls(
            answers=tuple(example.answers),
            are_regex=bool(getattr(example, "answers_are_regex", False)),
            style=getattr(example, "answer_style", "short"),
        )


@dataclass(frozen=True)
class Metric:
    """A score of an answer, and the verdict that compilation needs.

    Called without a trace it returns the score. With a trace, a teleprompter is choosing demonstrations: it returns
    whether the answer is good enough to learn from. A failed prediction scores 0 and is never good enough;
    an evaluation counts failures apart.

    Attributes:
        name: as registered.
        grade: the score of an answer, between 0 and 1.
        threshold: the score from which an answer is good enough; it may depend on the answer style.
        best_sample: whether the best of all sampled answers is scored, where the prediction has several. Only someone
            who knows the gold answer can choose so: an upper bound.
    """

    name: str
    grade: Callable[[str, Gold], float]
    threshold: Callable[[Gold], float] = lambda gold: 1.0
    best_sample: bool = False

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float | bool:
        """Return the score, or with a trace the verdict."""
        return self.score(example, prediction) if trace is None else self.verdict(example, prediction)

    def score(self, example: Any, prediction: Any) -> float:
        """Return a score between 0 and 1; 0 for a failed prediction, or one without an answer."""
        if getattr(prediction, "failure", None) is not None:
            return 0.0
        answers = [getattr(prediction, "answer", None)]
        if self.best_sample:
            answers += getattr(prediction, "samples", None) or []
        gold = Gold.of(example)
        return max(float(self.grade(str(answer), gold)) if answer else 0.0 for answer in answers)

    def verdict(self, example: Any, prediction: Any) -> bool:
        """Return whether the score is above 0 and reaches the threshold."""
        score = self.score(example, prediction)
        return score > 0 and score >= self.threshold(Gold.of(example))


def _cover_em(answer: str, gold: Gold) -> float:
    return pattern_in(answer, gold.answers) if gold.are_regex else cover_exact_match(answer, gold.answers)


def _cover_em_characters(answer: str, gold: Gold) -> float:
    if gold.are_regex:
        return pattern_in(answer, gold.answers)
    return cover_exact_match(answer, gold.answers, whole_words=False)


def _em(answer: str, gold: Gold) -> float:
    return pattern_match(answer, gold.answers) if gold.are_regex else exact_match(answer, gold.answers)


def _f1(answer: str, gold: Gold) -> float:
    # an answer shares no words with a pattern: it is right or wrong
    return pattern_match(answer, gold.answers) if gold.are_regex else f1(answer, gold.answers)


def _yes_no(answer: str, gold: Gold) -> float:
    return yes_no_accuracy(answer, gold.answers)


def _by_style(answer: str, gold: Gold) -> float:
    return metric_for(gold.style).grade(answer, gold)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("cover-em", _cover_em),
        Metric("cover-em-characters", _cover_em_characters),
        Metric("em", _em),
        # one word too many beside two right ones passes (.8), one right word of two does not (.5)
        Metric("f1", _f1, lambda gold: 0.6),
        # the best of several samples, as BlendFilter's paper scores them
        Metric("em-best-sample", _em, best_sample=True),
        Metric("f1-best-sample", _f1, lambda gold: 0.6, best_sample=True),
        Metric("yes-no-best-sample", _yes_no, best_sample=True),
        Metric("yes-no", _yes_no),
        Metric("label", lambda answer, gold: label_accuracy(answer, gold.answers)),
        # about what the papers' best systems reach on ELI5
        Metric("rouge-l", lambda answer, gold: rouge_l(answer, gold.answers), lambda gold: 0.25),
        Metric("by-style", _by_style, lambda gold: metric_for(gold.style).threshold(gold)),
    )
}
"""Every metric by its name; ``by-style`` scores each question with the metric of its own answer style."""

_OF_STYLE = {
    "short": "cover-em",
    "yes-no": "yes-no",
    "label": "label",
    "two-label": "label",
    "long": "rouge-l",
    "mixed": "by-style",
}


def metric(name: str) -> Metric:
    """Return the metric of this name.

    Raises:
        QuestreeError: if there is none; the message lists all names, and the nearest one.
    """
    return METRICS[_known(name, METRICS, "metric")]


def metric_for(style: str) -> Metric:
    """Return the metric of an answer style; ``mixed`` stands for questions of several styles.

    Raises:
        QuestreeError: if there is no such style.
    """
    return METRICS[_OF_STYLE[_known(style, _OF_STYLE, "answer style")]]


def _known(name: str, table: dict[str, Any], what: str) -> str:
    if name in table:
        return name
    raise QuestreeError(unknown_name(what, name, sorted(table)))
