"""Sweeps of SearChain's two thresholds (section 4.1 and appendix A.3.1): theta and alpha."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from ..data import Question
from ..metrics import contains, rouge_l
from ..programs.failure import CallFailedError
from ..retrieval import Passage, Reader
from ..retrieval.errors import QuestreeError
from .records import Record


@dataclass(frozen=True)
class Reading:
    """A reader's judgement of one passage.

    Attributes:
        score: how sure it is that the passage answers the question; minus infinity where it found no span.
        answers: whether the passage does.
    """

    score: float
    answers: bool


@dataclass(frozen=True)
class ThetaPoint:
    """How well "does this passage answer it" is told by a score above theta."""

    theta: float
    precision: float
    recall: float
    f1: float


def passage_pairs(questions: Sequence[Question], *, seed: int = 0) -> list[tuple[str, Passage, bool]]:
    """Each question with its supporting passage, and with another question's in which none of its answers stands.

    Raises:
        QuestreeError: if none of the questions comes with a supporting passage, or none has another to go with it.
    """
    gold = [(question, passage) for question in questions if (passage := _supporting(question)) is not None]
    if not gold:
        raise QuestreeError("None of these questions comes with its supporting passage; use nq or squad, for example.")
    rng = random.Random(seed)
    pairs: list[tuple[str, Passage, bool]] = []
    for question, passage in gold:
        pairs.append((question.question, passage, True))
        others = (rng.choice(gold)[1] for _ in range(100))
        wrong = next((other for other in others if not _may_answer(other, question, passage)), None)
        if wrong is not None:
            pairs.append((question.question, wrong, False))
    if all(answers for _, _, answers in pairs):
        raise QuestreeError("No passage here fails to answer a question; a sweep needs some that do: more questions.")
    return pairs


def read_all(
    reader: Reader,
    pairs: Sequence[tuple[str, Passage, bool]],
    *,
    concurrency: int = 4,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[Reading], int]:
    """What the reader makes of each pair, and how many calls failed; those give no reading.

    Args:
        reader: any; with the LM as reader, each pair is an LM call.
        pairs: of `passage_pairs`.
        concurrency: pairs that are read at the same time.
        on_progress: called in the caller's thread with the number of pairs that are done.

    Raises:
        QuestreeError: if every call failed.
    """

    def read(pair: tuple[str, Passage, bool]) -> Reading | CallFailedError:
        query, passage, answers = pair
        try:
            span = reader(query, passage)
        except CallFailedError as error:
            return error
        return Reading(span.score if span.text.strip() else float("-inf"), answers)

    readings: list[Reading] = []
    failure: CallFailedError | None = None
    with ThreadPoolExecutor(concurrency) as pool:
        futures = [pool.submit(copy_context().run, read, pair) for pair in pairs]
        for done, future in enumerate(futures, start=1):
            result = future.result()
            if isinstance(result, Reading):
                readings.append(result)
            else:
                failure = result
            on_progress(done)
    if not readings:
        raise QuestreeError(f"The reader could read none of {len(pairs)} passages ({failure}).")
    return readings, len(pairs) - len(readings)


def theta_sweep(readings: Sequence[Reading], thetas: Sequence[float]) -> list[ThetaPoint]:
    """Precision, recall and F1 at each theta: a passage is taken to answer where its score is above it."""
    return [_theta_point(readings, theta) for theta in thetas]


def best_theta(readings: Sequence[Reading]) -> ThetaPoint:
    """The theta of the highest F1 among all that tell these readings apart; the lowest of equals.

    It lies in the middle between two scores, or half below the lowest.
    """
    scores = sorted({reading.score for reading in readings if reading.score > float("-inf")})
    if not scores:
        raise QuestreeError("The reader found a span in none of the passages; there is no threshold to choose.")
    thetas = [scores[0] - 0.5, *((low + high) / 2 for low, high in pairwise(scores))]
    return max(theta_sweep(readings, thetas), key=lambda point: point.f1)


@dataclass(frozen=True)
class AlphaPoint:
    """What alpha would do on stored records of long answers.

    Attributes:
        contradicted: the share of nodes whose answer has a ROUGE-L with its passage of alpha or less.
        left_alone: questions without such a node.
        rouge_l_left_alone: their mean score; None where there are none.
        rouge_l_others: the mean score of the others; None where there are none.
    """

    alpha: float
    nodes: int
    contradicted: float
    left_alone: int
    rouge_l_left_alone: float | None
    rouge_l_others: float | None


def alpha_sweep(records: Sequence[Record], alphas: Sequence[float]) -> list[AlphaPoint]:
    """Where corrections would set in, and whether the answers that are left alone are the better ones.

    It looks at the answers that the LM gave before a passage was shown to it. What another alpha leads to is found
    by running it: ``questree ablate searchain --over alpha --value 0.3 --value 0.4``.

    Raises:
        QuestreeError: if these are no records of long answers, or no node has an answer and a passage.
    """
    long = [record for record in records if record.failure is None and "rouge-l" in record.scores]
    agreements = {record.id: agreed for record in long if (agreed := _agreements(record))}
    if not agreements:
        raise QuestreeError("No answered question here is scored by rouge-l and has nodes with answer and passage.")
    scores = {record.id: record.scores["rouge-l"] for record in long}
    return [_alpha_point(agreements, scores, alpha) for alpha in alphas]


def _supporting(question: Question) -> Passage | None:
    found = next((paragraph for paragraph in question.paragraphs if paragraph.is_supporting), None)
    return None if found is None else Passage(id=question.id, title=found.title, text=found.text)


def _may_answer(passage: Passage, question: Question, gold: Passage) -> bool:
    return passage.text == gold.text or any(contains(passage.shown(), answer) for answer in question.answers)


def _theta_point(readings: Sequence[Reading], theta: float) -> ThetaPoint:
    taken = [reading.answers for reading in readings if reading.score > theta]
    right = sum(taken)
    precision = right / len(taken) if taken else 0.0
    recall = right / max(1, sum(reading.answers for reading in readings))
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return ThetaPoint(theta, precision, recall, f1)


def _agreements(record: Record) -> list[float]:
    """ROUGE-L of answer and passage for each node that retrieval looked at and that was not rewritten."""
    nodes = record.tree.nodes if record.tree else []
    judged = [node for node in nodes if node.replaces is None and node.repeats is None]
    return [rouge_l(node.answer, [node.passage.text]) for node in judged if node.answer and node.passage]


def _alpha_point(agreements: dict[str, list[float]], scores: dict[str, float], alpha: float) -> AlphaPoint:
    nodes = [agreement for agreed in agreements.values() for agreement in agreed]
    alone = [scores[id] for id, agreed in agreements.items() if min(agreed) > alpha]
    others = [scores[id] for id, agreed in agreements.items() if min(agreed) <= alpha]
    return AlphaPoint(
        alpha,
        len(nodes),
        sum(agreement <= alpha for agreement in nodes) / len(nodes),
        len(alone),
        fmean(alone) if alone else None,
        fmean(others) if others else None,
    )
