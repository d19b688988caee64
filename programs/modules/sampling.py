"""Several samples of the same reasoning, and the answer that most of them give (Wang et al., ICLR 2023)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import dspy

from ...lm.call import ATTEMPTS
from ...lm.parallel import together
from ...metrics import normalise
from ...retrieval import Passage

_MOST = 1000  # rollouts of one sampling, retries included

T = TypeVar("T")
Sample = tuple[str, str, list[Passage]]
"""An answer, its final content, its references."""


def sample(draw: Callable[[], T], count: int, temperature: float) -> list[T]:
    """Draw several times, at the same time; a single time at the LM's own temperature.

    Each draw has a temperature and a rollout of its own, or the client's cache would give them all one reply.

    Args:
        draw: reasons with whichever LM is configured when it is called.
        count: how many.
        temperature: above 0.
    """

    def rollout(n: int) -> T:
        with dspy.context(lm=_sampling_lm(temperature, n)):
            return draw()

    return [draw()] if count == 1 else together([partial(rollout, n) for n in range(1, count + 1)])


def majority(samples: Sequence[T], answer_of: Callable[[T], str]) -> T:
    """The first sample whose answer, in its normal form, is given most often."""
    votes = Counter(normalise(answer_of(one)) for one in samples)
    return max(samples, key=lambda one: votes[normalise(answer_of(one))])


def agreement(samples: Sequence[T], answer_of: Callable[[T], str]) -> float:
    """The share of samples that give the answer which most give."""
    return max(Counter(normalise(answer_of(one)) for one in samples).values()) / len(samples)


def _sampling_lm(temperature: float, rollout: int) -> Any:
    lm = dspy.settings.lm
    if lm is None:
        return None  # as the call itself will tell
    # of samples within a sample, each is another; the rollouts in between are those of a call's retries
    outer = lm.kwargs.get("rollout_id") or 0
    return lm.copy(temperature=temperature, rollout_id=outer * _MOST + rollout * ATTEMPTS)
