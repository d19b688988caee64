"""What a reader makes of questions and passages whose truth is known.

A threshold is chosen on these readings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...common.errors import QuestreeError
from ...evaluation.pools import Threads
from ...lm.failure import CallFailedError
from ...retrieval import Passage, Reader, Span
from .examples import ReadingExample, draw_negatives

_TOGETHER = 64


@dataclass(frozen=True)
class Pair:
    """A question with one passage.

    Attributes:
        passage: its own, or one that does not answer it.
        answers: whether the passage answers the question.
    """

    example: ReadingExample
    passage: Passage
    answers: bool


@dataclass(frozen=True)
class Reading:
    """A reader's judgement of one passage.

    Attributes:
        score: how sure the reader is that the passage answers the question; minus infinity if it found no span.
        answers: whether the passage answers the question.
        example: the question; None where only the score is of interest.
        span: what it read; empty if it found none.
    """

    score: float
    answers: bool
    example: ReadingExample | None = None
    span: str = ""


def pairs_of(examples: Sequence[ReadingExample], *, seed: int = 0) -> list[Pair]:
    """Return each question with its own passage, and with one that holds none of its answers.

    The other passage is the first of its negatives (of mined ones, the one that the retriever ranks highest), else
    another question's passage.
    """
    if not examples:
        raise QuestreeError("None of these questions comes with its supporting passage; use nq or squad, for example.")
    rng = random.Random(seed)
    pairs: list[Pair] = []
    for example in examples:
        pairs.append(Pair(example, example.passage, True))
        wrong = example.negatives[:1] or draw_negatives(example, 1, examples, rng)
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
    """Return the reader's judgement of each pair, in their order, and the number of calls that failed.

    A failed call gives no reading.

    Args:
        reader: any; one that has ``read_many`` is given many pairs at once; with the LM, each pair is an LM call.
        on_progress: called in the caller's thread with the number of pairs that are done.
    """

    def read(pair: Pair) -> Span | CallFailedError:
        try:
            return reader(pair.example.question, pair.passage)
        except CallFailedError as error:
            return error

    given: Iterable[Span | CallFailedError] = Threads(concurrency).map(read, pairs)
    if (read_many := reader.read_many) is not None:
        asked = [(pair.example.question, pair.passage) for pair in pairs]
        given = (span for n in range(0, len(asked), _TOGETHER) for span in read_many(asked[n : n + _TOGETHER]))
    readings, failed = list[Reading](), list[CallFailedError]()
    for done, (pair, span) in enumerate(zip(pairs, given, strict=True), start=1):
        if isinstance(span, CallFailedError):
            failed.append(span)
        else:
            text = span.text.strip()
            readings.append(Reading(span.score if text else float("-inf"), pair.answers, pair.example, text))
        on_progress(done)
    if not readings:
        raise QuestreeError(f"The reader could read none of {len(pairs)} passages ({failed[0]}).")
    return readings, len(failed)
