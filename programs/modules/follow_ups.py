"""Rewrite a question that continues a conversation so that it is complete in itself."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ...lm.call import call
from ...lm.episode import episode
from ...signatures.subquestions import RestateQuestion

_TURNS, _CHARACTERS = 10, 2000  # only the last turns, and the beginning of each: follow-ups refer to these


def restated(question: str, history: Sequence[str]) -> str:
    """Return a question that is complete in itself, by one LM call.

    Args:
        question: as it was asked.
        history: earlier questions and answers, in order.
    """
    turns = [turn[:_CHARACTERS] for turn in history[-_TURNS:]]
    with episode():
        reply = call(dspy.Predict(RestateQuestion), conversation=turns, question=question)
    return str(reply.restated).strip() or question
