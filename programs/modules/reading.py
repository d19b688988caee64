"""The LM as reader, where no trained reader is at hand."""

from __future__ import annotations

import math

import dspy

from ...lm.call import call
from ...retrieval import Passage, Span
from ...signatures import ReadPassage

_CERTAIN = 0.999  # a stated 1.0 would be an infinite logit


class LMReader(dspy.Module):
    """Asks the LM for the span, and for its confidence, which becomes a logit as a trained reader's score is.

    Its threshold is the logit of .8: an LM's stated confidence is seldom lower for passages that do hold the answer.
    """

    name = "lm"
    threshold = math.log(0.8 / 0.2)
    read_many = None

    def __init__(self) -> None:
        super().__init__()
        self.read = dspy.Predict(ReadPassage)

    def forward(self, query: str, passage: Passage) -> Span:
        """The passage's answer to the query. An answer that does not stand in the passage is no span."""
        reply = call(self.read, query=query, passages=[passage.shown()])
        text = reply.span.strip() if _stands_in(reply.span, passage) else ""
        return Span(text=text, score=_logit(reply.confidence if text else 0.0))


def _stands_in(span: str, passage: Passage) -> bool:
    return _squeezed(span) in _squeezed(passage.shown())


def _squeezed(text: str) -> str:
    return " ".join(text.lower().split())


def _logit(probability: float) -> float:
    bounded = min(max(probability, 1 - _CERTAIN), _CERTAIN)
    return math.log(bounded / (1 - bounded))
