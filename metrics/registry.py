"""Metrics by name, each a callable ``(example, prediction, trace=None)`` as DSPy takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..common.errors import QuestreeError
from ..common.names import unknown_name
from .answer_scores import (
    contains,
    cover_exact_match,
    exact_match,
    f1,
    label_accuracy,
    pattern_in,
    pattern_match,
    rouge_l,
    yes_no_accuracy,
)
from .found_passages import f1_of_names, gold_names, names_as


@dataclass(frozen=True)
class Gold:
    """What is scored against: gold answers (or regular expressions), the answer style, and the gold passages."""

    answers: tuple[str, ...]
    are_regex: bool = False
    style: str = "short"
    passages: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()

    @classmethod
    def of(cls, example: Any) -> Gold:
        """Return the gold side of a DSPy example, or of anything with these attributes."""
        return cls(
            answers=tuple(example.answers),
            are_regex=bool(getattr(example, "answers_are_regex", False)),
            style=getattr(example, "answer_style", "short"),
            passages=tuple(getattr(example, "gold_passages", None) or ()),
            titles=tuple(getattr(example, "gold_titles", None) or ()),
        )


def _answer(prediction: Any) -> list[Any]:
    """Return the answer, alone in a list."""
    return [str(getattr(prediction, "answer", None) or "")]


def _every_sample(prediction: Any) -> list[Any]:
    """Return the answer and all answers that were sampled, where the prediction has several."""
    return [*_answer(prediction), *(str(one or "") for one in getattr(prediction, "samples", None) or [])]


def _seen(prediction: Any) -> list[Any]:
    """Return the passages that were seen, as one thing to grade."""
    return [getattr(prediction, "seen", None) or getattr(prediction, "passages", None)]


def _cited(prediction: Any) -> list[Any]:
    """Return the passages that the answer cites, as one thing to grade."""
    return [getattr(prediction, "references", None)]


@dataclass(frozen=True)
class Metric:
    """A score of an answer, and the verdict that compilation needs.

    Called without a trace it returns the score. With a trace, a teleprompter is choosing demonstrations: it returns
    whether the answer is good enough to learn from. A failed prediction scores 0 and is never good enough;
    an evaluation counts failures apart.

    Attributes:
        name: as registered.
        grade: the score of an answer, between 0 and 1; or of whatever else ``reads`` gives.
        threshold: the score from which an answer is good enough; it may depend on the answer style.
        reads: what of a prediction is graded; of several things the best counts. Only someone who knows the gold answer
            can choose the best of several samples: an upper bound.
    """

    name: str
    grade: Callable[[Any, Gold], float]
    threshold: Callable[[Gold], float] = lambda gold: 1.0
    reads: Callable[[Any], list[Any]] = _answer

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float | bool:
        """Return the score, or with a trace the verdict."""
        return self.score(example, prediction) if trace is None else self.verdict(example, prediction)

    def score(self, example: Any, prediction: Any) -> float:
        """Return a score between 0 and 1; 0 for a failed prediction, or one without an answer."""
        if getattr(prediction, "failure", None) is not None:
            return 0.0
        gold = Gold.of(example)
        return max(float(self.grade(one, gold)) if one else 0.0 for one in self.reads(prediction))

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


def _told(passages: Sequence[Any], gold: Gold) -> bool:
    """Return whether a gold answer stands in one of the passages, as whole words; a pattern, whether it is found."""
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    if gold.are_regex:
        return any(pattern_in(text, gold.answers) for text in texts)
    return any(contains(text, answer) for text in texts for answer in gold.answers)


def _support_f1(cited: Sequence[Any], gold: Gold) -> float:
    """Return the F1 of the cited passages and the gold ones: MuSiQue's support F1, which counts whole paragraphs."""
    wanted = gold_names(gold.passages, gold.titles)
    if not wanted:
        raise QuestreeError("support-f1 needs gold passages or titles, and the question has neither.")
    return f1_of_names(names_as(cited, gold.passages), wanted)


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
        Metric("em-best-sample", _em, reads=_every_sample),
        Metric("f1-best-sample", _f1, lambda gold: 0.6, reads=_every_sample),
        Metric("yes-no-best-sample", _yes_no, reads=_every_sample),
        Metric("yes-no", _yes_no),
        Metric("label", lambda answer, gold: label_accuracy(answer, gold.answers)),
        # about what the papers' best systems reach on ELI5
        Metric("rouge-l", lambda answer, gold: rouge_l(answer, gold.answers), lambda gold: 0.25),
        # whether a gold answer stands in what was found: FlashRAG's retrieval recall
        Metric("answer-recall@5", lambda passages, gold: _told(passages[:5], gold), reads=_seen),
        Metric("answer-recall", lambda passages, gold: _told(passages, gold), reads=_seen),
        Metric("support-f1", _support_f1, lambda gold: 0.6, reads=_cited),
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
