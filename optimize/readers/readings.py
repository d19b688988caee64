"""What a model makes of pairs whose truth is known: a reader of questions and passages, a duplicate check of questions.

A threshold is chosen on these readings.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from ...evaluation.pools import Threads
from ...lm.failure import CallFailedError
from ...retrieval import Passage, Reader, Span
from .examples import ReadingExample, draw_negatives

_TOGETHER = 64
_COLUMNS = ("question1", "question2", "is_duplicate")
_TRUTHS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


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


@dataclass(frozen=True)
class QuestionPair:
    """Two questions, and whether they ask the same."""

    first: str
    second: str
    same: bool

    @property
    def held_out(self) -> bool:
        """Return whether the pair is in the half that thresholds are scored on; the first question decides."""
        return hashlib.sha256(" ".join(self.first.lower().split()).encode()).digest()[0] % 2 == 1


def read_pairs(path: Path) -> list[QuestionPair]:
    """Read a file in the form of Quora Question Pairs: ``question1``, ``question2``, ``is_duplicate``.

    Args:
        path: ``.jsonl``; or ``.tsv`` or ``.csv`` with these names in the first line (other columns are ignored).
    """
    pairs: list[QuestionPair] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in _rows(file, path.suffix.lower()):
                pairs.append(_pair(row, f"{path}, line {number}"))
    except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError) as problem:
        raise QuestreeError(f"The pairs in {path} cannot be read: {problem}") from problem
    if len({pair.same for pair in pairs}) < 2:
        raise QuestreeError(f"{path} holds {len(pairs)} pairs of one kind; a threshold needs duplicates and others.")
    return pairs


def compare_all(
    likeness: Callable[[str, Sequence[str]], list[float]],
    pairs: Sequence[QuestionPair],
    *,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[Reading]:
    """Return for each pair how alike its two are, and whether they ask the same.

    Args:
        likeness: of a query and others, one number for each; higher is more alike.
    """
    readings = []
    for pair in pairs:
        (score,) = likeness(pair.first, [pair.second])
        readings.append(Reading(score, pair.same))
        on_progress(len(readings))
    return readings


def _rows(file: Any, suffix: str) -> Iterator[tuple[int, Any]]:
    if suffix not in (".tsv", ".csv"):
        yield from ((number, json.loads(line)) for number, line in enumerate(file, start=1) if line.strip())
        return
    reader = csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",")
    for row in reader:
        if suffix == ".tsv" and "\t" in "".join(map(str, row.values())):
            raise csv.Error(f"up to line {reader.line_num}, an open quotation mark joins columns; give it as JSONL")
        yield reader.line_num, row


def _pair(row: Any, place: str) -> QuestionPair:
    given = row if isinstance(row, dict) else {}
    first, second, same = ("" if given.get(name) is None else str(given[name]).strip() for name in _COLUMNS)
    if not first or not second or same.lower() not in _TRUTHS:
        raise QuestreeError(f"{place}: a pair needs {', '.join(_COLUMNS)} (0 or 1).")
    return QuestionPair(first, second, _TRUTHS[same.lower()])
