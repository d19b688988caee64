"""Theta, the score above which a reader is trusted (Xu et al., WWW 2024, section 4.1): its choice, and its worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ...common.errors import QuestreeError
from ...metrics import Interval, exact_match, f1, mean_interval, pattern_match
from .readings import Reading

_LEVEL, _RESAMPLES = 0.95, 10_000
_NUMBERS_AT_ONCE = 4_000_000  # 32 MB
_POINTS = 400


@dataclass(frozen=True)
class ThetaPoint:
    """How well a score above theta tells passages that answer from passages that do not."""

    theta: float
    precision: float
    recall: float
    f1: float


def theta_sweep(readings: Sequence[Reading], thetas: Sequence[float]) -> list[ThetaPoint]:
    """Return precision, recall and F1 at each theta: a passage is taken to answer if its score is above it."""
    points, there = [], max(1, sum(reading.answers for reading in readings))
    for theta in thetas:
        taken = [reading.answers for reading in readings if reading.score > theta]
        precision, recall = sum(taken) / max(1, len(taken)), sum(taken) / there
        f1 = 2 * precision * recall / (precision + recall) if any(taken) else 0.0
        points.append(ThetaPoint(theta, precision, recall, f1))
    return points


def best_theta(readings: Sequence[Reading]) -> ThetaPoint:
    """Return the theta of the highest F1 among all that tell these readings apart; of equals, the lowest."""
    return max(theta_sweep(readings, candidate_thetas(readings)), key=lambda point: point.f1)


def candidate_thetas(readings: Sequence[Reading]) -> list[float]:
    """Return a theta for every way to part these readings: in the middle between two scores, or below the lowest."""
    scores = sorted({reading.score for reading in readings if reading.score > float("-inf")})
    if not scores:
        raise QuestreeError("The reader found a span in none of the passages; there is no threshold to choose.")
    return [scores[0] - 0.5, *((low + high) / 2 for low, high in pairwise(scores))]


@dataclass(frozen=True)
class ReaderScores:
    """A reader's scores on questions, each with its 95% interval over them: Wilson's of a share, else a bootstrap's.

    To say what the reader is worth, neither it nor its threshold may have been chosen on these questions.

    Attributes:
        em: SQuAD's exact match of the span that is read from the question's own passage, trusted or not.
        span_f1: SQuAD's F1 of it.
        relevance_f1: F1 of "does this passage answer it" at theta.
    """

    em: Interval
    span_f1: Interval
    relevance_f1: Interval
    theta: float

    def figures(self) -> dict[str, float]:
        """Return each score and the ends of its interval by name, as MLflow takes them."""
        scores = {"em": self.em, "span_f1": self.span_f1, "relevance_f1": self.relevance_f1}
        parts = {"": "mean", "_low": "low", "_high": "high"}
        named = {name + end: getattr(one, part) for end, part in parts.items() for name, one in scores.items()}
        return named | {"theta": self.theta}


def score_readings(readings: Sequence[Reading], theta: float) -> ReaderScores:
    """Return the scores of readings whose questions are known.

    Raises:
        ValueError: if none of them is of a passage that answers.
    """
    own = [(reading.span, reading.example) for reading in readings if reading.answers and reading.example]
    return ReaderScores(
        em=mean_interval(
            [
                float((pattern_match if example.answers_are_regex else exact_match)(span, example.answers))
                for span, example in own
            ]
        ),
        span_f1=mean_interval([f1(span, example.answers) for span, example in own]),
        relevance_f1=relevance_interval(readings, theta),
        theta=theta,
    )


def relevance_interval(readings: Sequence[Reading], theta: float) -> Interval:
    """Return F1 of "does this passage answer it" at theta; questions are resampled with all of their passages."""
    import numpy as np

    counts: dict[str, list[int]] = {}
    for place, reading in enumerate(readings):
        taken = reading.score > theta
        row = counts.setdefault(reading.example.id if reading.example else str(place), [0, 0])
        row[0] += 2 * (taken and reading.answers)
        row[1] += taken + reading.answers
    table = np.array(list(counts.values()))
    rng = np.random.default_rng(0)
    at_once = max(1, _NUMBERS_AT_ONCE // len(table))
    sums = np.concatenate(
        [
            # how often each question is drawn, instead of which ones
            rng.multinomial(len(table), np.full(len(table), 1 / len(table)), size=min(at_once, _RESAMPLES - done))
            @ table
            for done in range(0, _RESAMPLES, at_once)
        ]
    )
    low, high = np.quantile(sums[:, 0] / np.maximum(1, sums[:, 1]), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    (point,) = theta_sweep(readings, [theta])
    return Interval(point.f1, float(low), float(high), len(table))


def plot_theta(file: Path, readings: Sequence[Reading], chosen: ThetaPoint, title: str) -> None:
    """Write a PNG: F1, precision and recall by theta, and beneath the scores of passages by whether they answer."""
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
        f"theta {chosen.theta:.2f}: F1 {chosen.f1:.3f}", (chosen.theta, 0.03), (5, 0), textcoords="offset points"
    )
    above.set_ylim(0, 1.02)
    above.set_title(title, fontsize=10)
    above.legend(loc="lower left")
    groups = [
        [r.score for r in readings if r.answers is answers and r.score > float("-inf")] for answers in (True, False)
    ]
    below.hist(groups, bins=40, histtype="stepfilled", alpha=0.6, label=["answers", "does not"])
    below.axvline(chosen.theta, color="grey", linewidth=1)
    below.set(xlabel="theta", ylabel="passages")
    below.legend()
    try:
        FigureCanvasAgg(figure).print_png(str(file))
    except OSError as problem:
        raise QuestreeError(f"The plot {file} cannot be written: {problem.strerror}.") from problem
