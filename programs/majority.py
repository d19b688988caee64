"""Several samples of the same reasoning, and the answer that most of them give (Wang et al., ICLR 2023)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import dspy

from ..lm.call import ATTEMPTS
from ..lm.parallel import together
from ..metrics import normalise
from ..retrieval import Passage

_MOST = 1000  # rollouts of one sampling, retries included

T = TypeVar("T")
Sample = tuple[str, str, list[Passage]]
"""An answer, its final content, its references."""


def sample(draw: Callable[[], T], count: int, temperature: float) -> list[T]:
    """Draw several times, at the same time; a single time at the LM's own temperature.

    Each draw has a temperature and a rollout of its own, or the client's cache would give all of them one reply.

    Args:
        draw: reasons with the LM that is configured when it is called.
        count: how many times.
        temperature: above 0.
    """

    def rollout(number: int) -> T:
        with dspy.context(lm=_sampling_lm(temperature, number)):
            return draw()

    return [draw()] if count == 1 else together([partial(rollout, number) for number in range(1, count + 1)])


def answer_of(sampled: Sample) -> str:
    """Return the answer of a sample."""
    return sampled[0]


def majority(samples: Sequence[T], answer: Callable[[T], str]) -> T:
    """Return the first sample whose answer, in its normal form, is given most often."""
    votes = Counter(normalise(answer(one)) for one in samples)
    return max(samples, key=lambda one: votes[normalise(answer(one))])


def agreement(samples: Sequence[T], answer: Callable[[T], str]) -> float:
    """Return the share of samples that give the most frequent answer."""
    return max(Counter(normalise(answer(one)) for one in samples).values()) / len(samples)


def _sampling_lm(temperature: float, number: int) -> Any:
    lm = dspy.settings.lm
    if lm is None:
        return None  # the call itself reports it
    # a sample within a sample has rollouts of its own; the numbers in between are for the retries of a call
    outer = lm.kwargs.get("rollout_id") or 0
    return lm.copy(temperature=temperature, rollout_id=outer * _MOST + number * ATTEMPTS)
