"""Theta, the score above which a reader is trusted (Xu et al., WWW 2024, section 4.1), and how it is chosen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ..common.errors import QuestreeError
from ..data import Question
from ..evaluation.pools import Threads
from ..lm.failure import CallFailedError
from ..metrics import contains, pattern_in
from ..retrieval import Passage, Reader, Retriever, Span

_LOOKED_AT = 30  # passages of a search, or of other questions
_TOGETHER = 64


class Pair(NamedTuple):
    """A question with a passage, its own or one that holds none of its answers; ``answers`` tells which."""

    question: str
    passage: Passage
    answers: bool


class Reading(NamedTuple):
    """A reader's score that a passage answers its question, minus infinity without a span; and whether it does."""

    score: float
    answers: bool


@dataclass(frozen=True)
class ThetaPoint:
    """How well a score above theta tells passages that answer from passages that do not."""

    theta: float
    precision: float
    recall: float
    f1: float


def pairs_of(questions: Sequence[Question], retriever: Retriever | None = None, *, seed: int = 0) -> list[Pair]:
    """Return each question with its own passage, and with one that holds none of its answers.

    The other passage is the highest that the retriever finds, else one of the question's paragraphs, else another
    question's. Questions without an answer or a supporting passage are left out.
    """
    own = [(asked, passages[0]) for asked in questions if (passages := _supporting(asked))]
    if not own:
        raise QuestreeError("None of these questions comes with its supporting passage; use nq or squad, for example.")
    rng, pairs = random.Random(seed), list[Pair]()
    for asked, passage in own:
        found = [] if retriever is None else retriever(asked.question, k=_LOOKED_AT)
        beside = _passages(asked, supporting=False)
        others = [other for _, other in rng.sample(own, min(_LOOKED_AT, len(own)))]
        wrong = [one for one in (*found, *beside, *others) if one.text != passage.text and not _answered(asked, one)]
        pairs += [Pair(asked.question, passage, True), *(Pair(asked.question, one, False) for one in wrong[:1])]
    if all(pair.answers for pair in pairs):
        raise QuestreeError("No passage here fails to answer a question; a sweep needs some that do: more questions.")
    return pairs


def _supporting(asked: Question) -> list[Passage]:
    """Return the supporting passages, those that hold an answer first; none where there is no answer."""
    passages = _passages(asked, supporting=True) if asked.answers else []
    return sorted(passages, key=lambda passage: not _answered(asked, passage))


def _passages(asked: Question, *, supporting: bool) -> list[Passage]:
    return [
        Passage(id=f"{asked.id}/{place}", title=one.title, text=one.text)
        for place, one in enumerate(asked.paragraphs)
        if one.is_supporting is supporting
    ]


def _answered(asked: Question, passage: Passage) -> bool:
    shown = passage.shown()
    if asked.answers_are_regex:
        return pattern_in(shown, asked.answers)
    return any(contains(shown, answer) for answer in asked.answers)


def read_all(
    reader: Reader,
    pairs: Sequence[Pair],
    *,
    concurrency: int = 4,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[Reading], int]:
    """Return the reader's judgement of each pair, in their order, and the number of calls that failed.

    A failed call gives no reading.

    Args:
        reader: any; one that has ``read_many`` is given many pairs at once; with the LM, each pair is an LM call.
        on_progress: called in the caller's thread with the number of pairs that are done.
    """

    def read(pair: Pair) -> Span | CallFailedError:
        try:
            return reader(pair.question, pair.passage)
        except CallFailedError as error:
            return error

    given: Iterable[Span | CallFailedError] = Threads(concurrency).map(read, pairs)
    if (read_many := reader.read_many) is not None:
        asked = [(pair.question, pair.passage) for pair in pairs]
        given = (span for n in range(0, len(asked), _TOGETHER) for span in read_many(asked[n : n + _TOGETHER]))
    readings, failed = list[Reading](), list[CallFailedError]()
    for done, (pair, span) in enumerate(zip(pairs, given, strict=True), start=1):
        if isinstance(span, CallFailedError):
            failed.append(span)
        else:
            readings.append(Reading(span.score if span.text.strip() else float("-inf"), pair.answers))
        on_progress(done)
    if not readings:
        raise QuestreeError(f"The reader could read none of {len(pairs)} passages ({failed[0]}).")
    return readings, len(failed)


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
    """Return the theta of the highest F1, in the middle between two scores or below the lowest; of equals the lowest.

    Raises:
        QuestreeError: if no reading has a span.
    """
    scores = sorted({reading.score for reading in readings if reading.score > float("-inf")})
    if not scores:
        raise QuestreeError("The reader found a span in none of the passages; there is no threshold to choose.")
    thetas = [scores[0] - 0.5, *((low + high) / 2 for low, high in pairwise(scores))]
    return max(theta_sweep(readings, thetas), key=lambda point: point.f1)
