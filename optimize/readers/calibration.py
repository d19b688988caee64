"""Choosing theta, the score above which a reader is trusted (Xu et al., WWW 2024, section 4.1)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ...common.errors import QuestreeError
from ...lm.failure import CallFailedError
from ...retrieval import Passage, Reader, Span
from .examples import ReadingExample, drawn

_TOGETHER = 64


@dataclass(frozen=True)
class Pair:
    """A question with one passage.

    Attributes:
        example: the question.
        passage: its own, or one that does not answer it.
        answers: whether the passage does.
    """

    example: ReadingExample
    passage: Passage
    answers: bool


@dataclass(frozen=True)
class Reading:
    """A reader's judgement of one passage.

    Attributes:
        score: how sure it is that the passage answers the question; minus infinity where it found no span.
        answers: whether the passage does.
        example: the question; None where only the score is of interest.
        span: what it read; empty where it found none.
    """

    score: float
    answers: bool
    example: ReadingExample | None = None
    span: str = ""


@dataclass(frozen=True)
class ThetaPoint:
    """How well "does this passage answer it" is told by a score above theta."""

    theta: float
    precision: float
    recall: float
    f1: float


def pairs_of(examples: Sequence[ReadingExample], *, seed: int = 0) -> list[Pair]:
    """Each question with its own passage, and with one that holds none of its answers.

    That one is the first of its negatives (mined: the one that the retriever ranks highest), else another question's
    passage.

    Raises:
        QuestreeError: no question has a passage, or none has another to go with it.
    """
    if not examples:
        raise QuestreeError("None of these questions comes with its supporting passage; use nq or squad, for example.")
    rng = random.Random(seed)
    pairs: list[Pair] = []
    for example in examples:
        pairs.append(Pair(example, example.passage, True))
        wrong = example.negatives[:1] or drawn(example, 1, examples, rng)
        pairs += [Pair(example, passage, False) for passage in wrong]
    if all(pair.answers for pair in pairs):
        raise QuestreeError("No passage here fails to answer a question; a sweep needs some that do: more questions.")
    return pairs


def read_all(
    reader: Reader,
    pairs: Sequence[Pair],
    *,
    concurrency: int = 4,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[Reading], int]:
    """What the reader makes of each pair, in their order, and how many calls failed; those give no reading.

    Args:
        reader: any; one that has ``read_many`` is given many at once; with the LM, each pair is an LM call.
        pairs: of `pairs_of`.
        concurrency: pairs that are read at the same time.
        on_progress: called in the caller's thread with the number of pairs that are done.

    Raises:
        QuestreeError: if every call failed.
    """
    spans: Sequence[Span | CallFailedError]
    if reader.read_many is not None:
        spans = _in_batches(reader.read_many, pairs, on_progress)
    else:
        spans = _one_by_one(reader, pairs, concurrency, on_progress)
    readings = [
        Reading(span.score if span.text.strip() else float("-inf"), pair.answers, pair.example, span.text.strip())
        for pair, span in zip(pairs, spans, strict=True)
        if isinstance(span, Span)
    ]
    if not readings:
        raise QuestreeError(f"The reader could read none of {len(pairs)} passages ({spans[0]}).")
    return readings, len(pairs) - len(readings)


def theta_sweep(readings: Sequence[Reading], thetas: Sequence[float]) -> list[ThetaPoint]:
    """Precision, recall and F1 at each theta: a passage is taken to answer where its score is above it."""
    return [_theta_point(readings, theta) for theta in thetas]


def candidate_thetas(readings: Sequence[Reading]) -> list[float]:
    """A theta for every way to tell these readings apart: in the middle between two scores, or below the lowest.

    Raises:
        QuestreeError: no reading has a span.
    """
    scores = sorted({reading.score for reading in readings if reading.score > float("-inf")})
    if not scores:
        raise QuestreeError("The reader found a span in none of the passages; there is no threshold to choose.")
    return [scores[0] - 0.5, *((low + high) / 2 for low, high in pairwise(scores))]


def best_theta(readings: Sequence[Reading]) -> ThetaPoint:
    """The theta of the highest F1 among all that tell these readings apart; the lowest of equals.

    Raises:
        QuestreeError: no reading has a span.
    """
    return max(theta_sweep(readings, candidate_thetas(readings)), key=lambda point: point.f1)


def _in_batches(
    read_many: Callable[[Sequence[tuple[str, Passage]]], list[Span]],
    pairs: Sequence[Pair],
    on_progress: Callable[[int], None],
) -> list[Span]:
    spans: list[Span] = []
    for first in range(0, len(pairs), _TOGETHER):
        spans += read_many([(pair.example.question, pair.passage) for pair in pairs[first : first + _TOGETHER]])
        on_progress(len(spans))
    return spans


def _one_by_one(
    reader: Reader, pairs: Sequence[Pair], concurrency: int, on_progress: Callable[[int], None]
) -> list[Span | CallFailedError]:
    def read(pair: Pair) -> Span | CallFailedError:
        try:
            return reader(pair.example.question, pair.passage)
        except CallFailedError as error:
            return error

    spans: list[Span | CallFailedError] = []
    with ThreadPoolExecutor(concurrency) as pool:
        for future in [pool.submit(copy_context().run, read, pair) for pair in pairs]:
            spans.append(future.result())
            on_progress(len(spans))
    return spans


def _theta_point(readings: Sequence[Reading], theta: float) -> ThetaPoint:
    taken = [reading.answers for reading in readings if reading.score > theta]
    right = sum(taken)
    precision = right / len(taken) if taken else 0.0
    recall = right / max(1, sum(reading.answers for reading in readings))
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return ThetaPoint(theta, precision, recall, f1)


_POINTS = 400


def plot_theta(file: Path, readings: Sequence[Reading], chosen: ThetaPoint, title: str, *, x: str = "theta") -> None:
    """Write a PNG: the three curves above, the scores of passages that answer and that do not beneath.

    Args:
        file: to write.
        readings: that the threshold was chosen on.
        chosen: the threshold.
        title: what was read, and by whom.
        x: what the threshold is called.

    Raises:
        QuestreeError: it cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    thetas = candidate_thetas(readings)
    points = theta_sweep(readings, thetas[:: max(1, len(thetas) // _POINTS)])
    figure = Figure(figsize=(7.5, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for name, style in (("f1", "-"), ("precision", "--"), ("recall", ":")):
        above.plot([p.theta for p in points], [getattr(p, name) for p in points], style, label=name.replace("f1", "F1"))
    above.axvline(chosen.theta, color="grey", linewidth=1)
    above.annotate(
        f"{x} {chosen.theta:.2f}: F1 {chosen.f1:.3f}", (chosen.theta, 0.03), (5, 0), textcoords="offset points"
    )
    above.set_ylim(0, 1.02)
    above.set_title(title, fontsize=10)
    above.legend(loc="lower left")
    groups = [
        [r.score for r in readings if r.answers is answers and r.score > float("-inf")] for answers in (True, False)
    ]
    below.hist(groups, bins=40, histtype="stepfilled", alpha=0.6, label=["answers", "does not"])
    below.axvline(chosen.theta, color="grey", linewidth=1)
    below.set(xlabel=x, ylabel="passages" if x == "theta" else "pairs")
    below.legend()
    try:
        FigureCanvasAgg(figure).print_png(str(file))
    except OSError as problem:
        raise QuestreeError(f"The plot {file} cannot be written: {problem.strerror}.") from problem
