"""What a reader makes of passages that answer a question, and of passages that do not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

from ...common.errors import QuestreeError
from ...lm.failure import CallFailedError
from ...retrieval import Passage, Reader, Span
from .examples import ReadingExample, draw_negatives

_TOGETHER = 64


@dataclass(frozen=True)
class Pair:
    """A question with one passage.

    Attributes:
        example: the question.
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

    Raises:
        QuestreeError: if no question has a passage, or none has another to go with it.
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
        pairs: of `pairs_of`.
        concurrency: pairs that are read at the same time.
        on_progress: called in the caller's thread with the number of pairs that are done.

    Raises:
        QuestreeError: if every call failed.
    """
    spans: Sequence[Span | CallFailedError]
    if reader.read_many is not None:
        spans = _read_in_batches(reader.read_many, pairs, on_progress)
    else:
        spans = _read_one_by_one(reader, pairs, concurrency, on_progress)
    readings = [
        Reading(span.score if span.text.strip() else float("-inf"), pair.answers, pair.example, span.text.strip())
        for pair, span in zip(pairs, spans, strict=True)
        if isinstance(span, Span)
    ]
    if not readings:
        raise QuestreeError(f"The reader could read none of {len(pairs)} passages ({spans[0]}).")
    return readings, len(pairs) - len(readings)


def _read_in_batches(
    read_many: Callable[[Sequence[tuple[str, Passage]]], list[Span]],
    pairs: Sequence[Pair],
    on_progress: Callable[[int], None],
) -> list[Span]:
    spans: list[Span] = []
    for first in range(0, len(pairs), _TOGETHER):
        spans += read_many([(pair.example.question, pair.passage) for pair in pairs[first : first + _TOGETHER]])
        on_progress(len(spans))
    return spans


def _read_one_by_one(
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
