"""A question that goes on from a conversation becomes one that is complete in itself."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ...lm.call import call
from ...lm.episode import episode
from ...signatures.subquestions import RestateQuestion

_TURNS, _CHARACTERS = 10, 2000  # the last turns, and of each its beginning: what a follow-up goes back to


def restated(question: str, history: Sequence[str]) -> str:
    """Return a question that is complete in itself, by one LM call.

    Args:
        question: as it was asked.
        history: what was asked and answered before, in order.
    """
    turns = [turn[:_CHARACTERS] for turn in history[-_TURNS:]]
    with episode():
        reply = call(dspy.Predict(RestateQuestion), conversation=turns, question=question)
    return str(reply.restated).strip() or question
