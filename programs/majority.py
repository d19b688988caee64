"""Several samples of the same reasoning, and the answer that most of them give (Wang et al., ICLR 2023)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import dspy

from ..common.text import text_or_none
from ..lm.call import ATTEMPTS
from ..lm.failure import CallFailedError
from ..lm.options import rollout_in_use, sampled
from ..lm.parallel import run_parallel
from ..metrics import by_value, compared, items, read_label, read_yes_no
from ..retrieval import Passage
from ..signatures import AnswerStyle
from .answer import answer_items
from .modules.answers import CitedAnswer, cited_answer

_MOST = 1000  # rollouts of one sampling, retries included

T = TypeVar("T")


def sample(draw: Callable[[], T], count: int, temperature: float) -> list[T]:
    """Draw several samples at the same time; a single one is drawn at the LM's own temperature.

    Each draw has its own temperature and rollout, or the client's cache would give all of them the same reply.

    Returns:
        What was drawn, without the samples whose replies could not be used: only the others vote.

    Raises:
        CallFailedError: if no sample's reply could be used, or one failed for a reason that all of them share.
    """

    def rollout(number: int) -> T:
        with sampled(temperature, rollout_of(number)):
            return draw()

    return [draw()] if count == 1 else usable([partial(rollout, number) for number in range(1, count + 1)])


def usable(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run samples at the same time; return the results of those whose replies could be used.

    Raises:
        CallFailedError: the first one, if there is no result; or one that is not about a reply alone.
    """

    def result_of(task: Callable[[], T]) -> T | CallFailedError:
        try:
            return task()
        except CallFailedError as error:
            if error.failure.cause in ("unparsable", "truncated"):
                return error
            raise

    results = run_parallel([partial(result_of, task) for task in tasks])
    drawn = [result for result in results if not isinstance(result, CallFailedError)]
    if not drawn:
        raise next(result for result in results if isinstance(result, CallFailedError))
    return drawn


def majority_answer(
    predict: dspy.Predict, passages: list[Passage], count: int, temperature: float, **inputs: Any
) -> tuple[CitedAnswer, list[str]]:
    """Draw several answers by `cited_answer`; return the first one that the majority agrees with, and all of them.

    Those whose replies could not be used are left out. A single one is drawn at the LM's own temperature.
    """
    samples = sample(partial(cited_answer, predict, passages, **inputs), count, temperature)
    answers = [answer for answer, *_ in samples]
    return samples[winner(answers, inputs["answer_style"])], answers


def winner(answers: Sequence[str], style: AnswerStyle) -> int:
    """Return the index of the first answer with the most votes (`vote`); 0 if no answer has one."""
    votes = [vote(answer, style) for answer in answers]
    count = Counter(filter(None, votes))
    return max(range(len(votes)), key=lambda place: count[votes[place]])


def most_votes(answers: Sequence[str], style: AnswerStyle) -> int:
    """Return how many answers agree with the most frequent one, as `vote` reads them."""
    return max(Counter(filter(None, (vote(answer, style) for answer in answers))).values(), default=0)


def vote(answer: str, style: AnswerStyle) -> str:
    """Return the value that an answer votes for: a verdict, label or set of items in such styles, else its normal form.

    It is empty, and no vote, if the answer is empty or says that there is none.
    """
    if style == "yes-no" and (verdict := read_yes_no(answer or "")):
        return verdict
    if style in ("label", "two-label") and (label := read_label(answer or "")):
        return label
    text = text_or_none(answer) or ""
    if style == "list":
        return "; ".join(sorted(set(map(by_value, answer_items(text)))))
    return ", ".join(sorted(filter(None, map(by_value, items(text))))) or compared(text)


def rollout_of(number: int) -> int:
    """Return the rollout of a sample, from 1, with room for the retries of its calls.

    A sample within a sample, or within a repeat of a run, has rollouts of its own.
    """
    return rollout_in_use() * _MOST + number * ATTEMPTS
