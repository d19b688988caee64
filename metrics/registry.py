"""Metrics by name, each a callable ``(example, prediction, trace=None)`` as DSPy takes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..common.errors import QuestreeError, unknown_name
from ..common.registry import Registry
from .answer_lists import count_match, declined, list_scores
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
from .found_passages import answer_stands_in, f1_of_names, gold_names, names_as
from .supporting_facts import claimed_facts, fact_scores, gold_facts


@dataclass(frozen=True)
class Gold:
    """What is scored against: gold answers (or regular expressions), answer style, gold passages and sentences.

    Attributes:
        answers: any is right, but of style ``list`` all are needed; none if the corpus does not tell it.
        style: the answer style; ``count`` for a question whose type is that.
        needed: of style ``list``, each item with its spellings.
    """

    answers: tuple[str, ...]
    are_regex: bool = False
    style: str = "short"
    passages: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    sentences: tuple[dict[str, Any], ...] = ()
    needed: tuple[tuple[str, ...], ...] = ()

    @property
    def items(self) -> tuple[tuple[str, ...], ...]:
        """Return what an answer has to hold: each item with the spellings of which any is right."""
        return self.needed or ((self.answers,) if self.answers else ())

    @classmethod
    def of(cls, example: Any) -> Gold:
        """Return the gold side of a DSPy example, or of anything with these attributes."""
        answers, style = tuple(example.answers), getattr(example, "answer_style", "short")
        needed = tuple(map(tuple, getattr(example, "needed", None) or ()))
        if style == "list":
            needed = needed or tuple((one,) for one in answers)
        elif getattr(example, "kind", None) == "count":
            style = "count"
        return cls(
            answers=answers,
            are_regex=bool(getattr(example, "answers_are_regex", False)),
            style="list" if needed else style,
            needed=needed,
            passages=tuple(getattr(example, "gold_passages", None) or ()),
            titles=tuple(getattr(example, "gold_titles", None) or ()),
            sentences=tuple(getattr(example, "gold_sentences", None) or ()),
        )


def _answer(prediction: Any) -> list[Any]:
    """Return the answer, alone in a list."""
    return [str(getattr(prediction, "answer", None) or "")]


def _every_sample(prediction: Any) -> list[Any]:
    """Return the answer and all answers that were sampled, where the prediction has several."""
    return [*_answer(prediction), *(str(one or "") for one in getattr(prediction, "samples", None) or [])]


def _items(prediction: Any) -> list[Any]:
    """Return the answer's items, as one thing to grade; the answer in words where the prediction has no items."""
    told = getattr(prediction, "answers", None)
    return _answer(prediction) if told is None else [[str(one) for one in told]]


def _itself(prediction: Any) -> list[Any]:
    """Return the prediction, for a metric that leaves it to another."""
    return [prediction]


def _seen(prediction: Any) -> list[Any]:
    """Return the passages that were seen, as one thing to grade."""
    return [getattr(prediction, "seen", None) or getattr(prediction, "passages", None)]


def _cited(prediction: Any) -> list[Any]:
    """Return the passages that the answer cites, as one thing to grade."""
    return [getattr(prediction, "references", None)]


def _claims(prediction: Any) -> list[Any]:
    """Return the content with the passages that it cites, as one thing to grade; None where it cites nothing."""
    references = getattr(prediction, "references", None)
    return [(str(getattr(prediction, "final_content", None) or ""), references) if references else None]


def _whole(gold: Gold) -> float:
    return 1.0


def _most(gold: Gold) -> float:
    return 0.8  # of a list's F1: three of four pass (.86), one of two does not (.67)


def _enough(gold: Gold) -> float:
    return 0.6  # of an F1: one word too many beside two right ones passes (.8), one right word of two does not (.5)


@dataclass(frozen=True)
class Metric:
    """A score of an answer, and the verdict that compilation needs.

    Called without a trace it returns the score. With a trace, a teleprompter is choosing demonstrations: it returns
    whether the answer is good enough to learn from. A failed prediction scores 0 and is never good enough;
    an evaluation counts failures apart. Whatever grades answers gives a question without one 1 if it was declined, as
    SQuAD 2.0's script does (Rajpurkar et al., ACL 2018).

    Attributes:
        name: as registered.
        grade: the score of an answer, between 0 and 1; or of whatever else ``reads`` gives.
        threshold: the score from which an answer is good enough; it may depend on the answer style.
        reads: what of a prediction is graded; of several things the best counts. Only someone who knows the gold answer
            can choose the best of several samples: an upper bound.
        check: raises a `QuestreeError` if the question lacks what an answer is graded by.
        about: one line for people, with its source in brackets.
    """

    name: str
    grade: Callable[[Any, Gold], float]
    threshold: Callable[[Gold], float] = _whole
    reads: Callable[[Any], list[Any]] = _answer
    check: Callable[[Gold], None] = lambda gold: None
    about: str = ""

    @property
    def grades_answers(self) -> bool:
        """Return whether an answer alone, without passages or citations, can be graded."""
        return self.reads in (_answer, _every_sample, _items, _itself)

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float | bool:
        """Return the score, or with a trace the verdict."""
        return self.score(example, prediction) if trace is None else self.verdict(example, prediction)

    def score(self, example: Any, prediction: Any) -> float:
        """Return a score between 0 and 1; 0 for a failed prediction, or one without an answer where there is one.

        Raises:
            QuestreeError: the question lacks what an answer is graded by.
        """
        gold = Gold.of(example)
        self.check(gold)
        if getattr(prediction, "failure", None) is not None:
            return 0.0
        if not gold.answers and self.grades_answers:
            return float(declined(prediction))
        return self.best(prediction, gold)

    def best(self, prediction: Any, gold: Gold) -> float:
        """Return the best grade of what is read of a prediction; 0 where that is nothing."""
        return max(float(self.grade(one, gold)) if one else 0.0 for one in self.reads(prediction))

    def verdict(self, example: Any, prediction: Any) -> bool:
        """Return whether the prediction is good enough to learn from."""
        return self.accepts(self.score(example, prediction), example)

    def accepts(self, score: float, example: Any) -> bool:
        """Return whether a score is above 0 and reaches the threshold."""
        return score > 0 and score >= self.threshold(Gold.of(example))


@dataclass(frozen=True)
class NamedMetric:
    """A metric of another package, under the name by which it was asked for.

    Attributes:
        name: as it was asked for.
        function: ``(example, prediction, trace=None)``, as DSPy has it.
    """

    name: str
    function: Callable[..., Any]

    @property
    def about(self) -> str:
        """Return what the function says of itself."""
        return inspect.getdoc(self.function) or ""

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> Any:
        """Return what the function gives; without a trace it need not take one."""
        return self.function(example, prediction) if trace is None else self.function(example, prediction, trace)


def _by_words(
    plain: Callable[[str, Sequence[str]], float], pattern: Callable[[str, Sequence[str]], float] = pattern_match
) -> Callable[[Any, Gold], float]:
    """Return the grade of an answer by its words, or by the pattern where the gold answers are regular expressions."""
    return lambda answer, gold: (pattern if gold.are_regex else plain)(answer, gold.answers)


def _told(passages: Sequence[Any], gold: Gold) -> bool:
    return all(answer_stands_in(passages, item, gold.are_regex) for item in gold.items)


def _check_told(gold: Gold) -> None:
    if not gold.answers:
        raise QuestreeError("answer-recall looks for the answer in passages, and the question has none.")


def _check_single(gold: Gold) -> None:
    if gold.needed:
        raise QuestreeError("The answer is a list, and the metric takes any item for all: take by-style or list-f1.")


def _check_texts(gold: Gold) -> None:
    if gold.are_regex:
        raise QuestreeError("Items are compared as texts, and the answers are regular expressions: take cover-em.")


def _list_score(name: str, given: Any, gold: Gold) -> float:
    """Return one of `list_scores`."""
    return list_scores(given, gold.items)[name]


def _support_f1(cited: Sequence[Any], gold: Gold) -> float:
    """Return the F1 of the cited passages and the gold ones: MuSiQue's support F1, which counts whole paragraphs."""
    return f1_of_names(names_as(cited, gold.passages), gold_names(gold.passages, gold.titles))


def _check_passages(gold: Gold) -> None:
    if not gold_names(gold.passages, gold.titles):
        raise QuestreeError("support-f1 needs gold passages or titles, and the question has neither.")


def _check_sentences(name: str, gold: Gold) -> None:
    if not gold.sentences:
        raise QuestreeError(f"{name} needs supporting sentences, and the question has none: take support-f1.")


def _fact_score(name: str, claims: tuple[str, Sequence[Any]], gold: Gold) -> float:
    """Return one of `fact_scores` of what an answer claims by sentences."""
    return fact_scores(claimed_facts(*claims, gold.sentences), gold_facts(gold.sentences))[name]


_SQUAD = "(Rajpurkar et al., EMNLP 2016)"

_ALONE = (
    Metric(
        "cover-em",
        _by_words(cover_exact_match, pattern_in),
        about="Whether a gold answer stands in the answer, as whole words (SearChain, table 1)",
    ),
    Metric(
        "cover-em-characters",
        _by_words(partial(cover_exact_match, whole_words=False), pattern_in),
        about="The same by characters, as SearChain's authors' code has it",
    ),
    Metric(
        "em",
        _by_words(exact_match),
        about=f"Whether the answer is a gold answer, but for case and articles {_SQUAD}",
    ),
    Metric("f1", _by_words(f1), _enough, about=f"The words that the answer shares with a gold answer {_SQUAD}"),
    Metric(
        "yes-no",
        lambda answer, gold: yes_no_accuracy(answer, gold.answers),
        about="Whether a yes or a no is the right one (Geva et al., TACL 2021, StrategyQA)",
    ),
    Metric(
        "label",
        lambda answer, gold: label_accuracy(answer, gold.answers),
        about="Whether the label is the right one (Thorne et al., NAACL 2018, FEVER)",
    ),
    # about what the papers' best systems reach on ELI5
    Metric(
        "rouge-l",
        lambda answer, gold: rouge_l(answer, gold.answers),
        lambda gold: 0.25,
        about="The longest common sequence of words with a gold answer (Lin, 2004, ROUGE)",
    ),
    # whether a gold answer stands in what was found: FlashRAG's retrieval recall
    Metric(
        "answer-recall@5",
        lambda passages, gold: _told(passages[:5], gold),
        reads=_seen,
        check=_check_told,
        about="Whether a gold answer stands in the first five passages (Jin et al., 2024, FlashRAG)",
    ),
    Metric(
        "answer-recall",
        _told,
        reads=_seen,
        check=_check_told,
        about="Whether a gold answer stands in any passage that was found (Jin et al., 2024, FlashRAG)",
    ),
    Metric(
        "support-f1",
        _support_f1,
        _enough,
        reads=_cited,
        check=_check_passages,
        about="F1 of the cited passages and the gold ones (Trivedi et al., TACL 2022, MuSiQue)",
    ),
    Metric(
        "count",
        lambda answer, gold: count_match(answer, gold.answers),
        about="Whether the one number in the answer is the right one, by its value (Gong et al., 2025, PhantomWiki)",
    ),
    Metric(
        "by-style",
        lambda prediction, gold: metric_for(gold.style).best(prediction, gold),
        lambda gold: metric_for(gold.style).threshold(gold),
        reads=_itself,
        about="Each question by the metric of its own answer style; one without an answer by whether it was declined",
    ),
)
_OF_LISTS = [
    Metric(name, partial(_list_score, part), threshold, reads=_items, check=_check_texts, about=about)
    for name, part, threshold, about in (
        ("list-f1", "f1", _most, "F1 of the answer's items and the gold ones (Gong et al., 2025, PhantomWiki)"),
        ("list-precision", "precision", _whole, "The share of the answer's items that are gold ones"),
        ("list-recall", "recall", _whole, "The share of the gold items that the answer has"),
        ("complete", "complete", _whole, "Whether the answer has every gold item, and nothing else"),
    )
]
# as BlendFilter's paper scores them (Wang et al., EMNLP 2024, arXiv 2402.11129)
_OF_SAMPLES = [
    replace(one, name=f"{one.name}-best-sample", reads=_every_sample, about=f"{one.about}: the best of several samples")
    for one in _ALONE
    if one.name in ("em", "f1", "yes-no")
]
_OF_SENTENCES = [
    Metric(
        f"sp-{name}",
        partial(_fact_score, name),
        _whole if name == "em" else _enough,
        reads=_claims,
        check=partial(_check_sentences, f"sp-{name}"),
        about=f"{about} (Yang et al., EMNLP 2018, HotpotQA)",
    )
    for name, about in {
        "em": "Whether the claimed sentences are the supporting ones",
        "f1": "F1 of the claimed sentences and the supporting ones",
        "precision": "The share of the claimed sentences that support the answer",
        "recall": "The share of the supporting sentences that are claimed",
    }.items()
]
METRICS: dict[str, Metric] = {
    one.name: replace(one, check=_check_single) if one.reads in (_answer, _every_sample) else one
    for one in (*_ALONE, *_OF_LISTS, *_OF_SAMPLES, *_OF_SENTENCES)
}
"""Every metric by its name; ``by-style`` scores each question with the metric of its own answer style."""

_OF_STYLE = {
    "short": "cover-em",
    "yes-no": "yes-no",
    "label": "label",
    "two-label": "label",
    "long": "rouge-l",
    "list": "list-f1",
    "count": "count",
    "mixed": "by-style",
}


def _read_metric(name: str, found: Any) -> Metric | NamedMetric:
    if isinstance(found, Metric):
        return replace(found, name=name)
    if not callable(found) or isinstance(found, type):
        raise TypeError("it is no metric: give a function (example, prediction, trace=None), or a Metric")
    return NamedMetric(name, found)


REGISTRY: Registry[Metric | NamedMetric] = Registry("metric", METRICS, _read_metric)
"""Our metrics, and those of other packages."""


def metric(name: str) -> Metric | NamedMetric:
    """Return the metric of this name: one of `METRICS`, one that a package offers, or ``package:name``.

    Raises:
        QuestreeError: if there is none; the message lists all names, and the nearest one.
    """
    return REGISTRY.named(name)


def metric_for(style: str) -> Metric:
    """Return the metric of an answer style; ``mixed`` stands for questions of several styles.

    Raises:
        QuestreeError: if there is no such style.
    """
    if style not in _OF_STYLE:
        raise QuestreeError(unknown_name("answer style", style, sorted(_OF_STYLE)))
    return METRICS[_OF_STYLE[style]]
