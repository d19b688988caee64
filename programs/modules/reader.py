"""Readers of single passages, trained ones and the LM in place of one; and the check of an answer by what they read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import dspy

from ...common.event_loop import no_coroutine, off_loop
from ...common.text import text_or_none
from ...lm.call import call
from ...lm.episode import step
from ...lm.failure import CallFailedError
from ...metrics import agree, normalise, stands_in, without_marks
from ...retrieval import Passage, Reader, Span
from ...signatures import AnswerStyle
from ...signatures.reader import ReadPassage
from . import StepModule
from .verdict import Verdict, agree_at_length, more_exact

_PHRASE = 12  # words; a longer answer is no name, date or number
_CERTAIN = 0.999  # a confidence of 1.0 would be an infinite logit


class LMReader(StepModule):
    """A reader that asks the LM for the span and its confidence, whose logit is the score.

    The threshold is the logit of .8: for passages that hold the answer, an LM seldom states a lower confidence.
    """

    name = "lm"
    threshold = math.log(0.8 / 0.2)
    read_many = None

    def __init__(self) -> None:
        super().__init__()
        self.read = dspy.Predict(ReadPassage)

    def forward(self, query: str, passage: Passage) -> Span:
        """Return the passage's answer to the query; an answer that the passage does not hold gives an empty span."""
        shown = passage.shown()
        reply = call(self.read, query=query, passages=[shown])
        span = text_or_none(without_marks(reply.span)) or ""
        text = span if stands_in(shown, span) else ""
        return Span(text=text, score=_logit(as_share(reply.confidence) if text else 0.0))


class Read(StepModule):
    """Wraps a trained reader as a module for DSPy's callbacks, so that traces have a span for it."""

    def __init__(self, reader: Reader):
        super().__init__()
        self._reader = reader

    def forward(self, query: str, passage: Passage) -> Span:
        """Return what the reader reads."""
        return self._reader(query=query, passage=passage)


def read(reader: Reader, query: str, passage: Passage) -> Span:
    """Return a reader's span; the LM as reader is asked by an ordinary LM call.

    Raises:
        CallFailedError: the reader failed.
    """
    span: Span
    try:
        if isinstance(reader, LMReader):
            span = reader(query=query, passage=passage)
        else:
            given = {"query": query, "passage": passage.model_dump(mode="json")}
            look = partial(Read(reader), query=query, passage=passage)
            span = step("reading", reader.name, given, Span, lambda: no_coroutine(off_loop(look), reader.name))
    except CallFailedError:
        raise
    except Exception as error:
        raise CallFailedError("reader", f"{type(error).__name__}: {error}") from error
    return span


@dataclass(frozen=True)
class SpanCheck:
    """Checks an answer by the best span that a reader finds, if the reader is sure enough (SearChain, section 3.2).

    Attributes:
        reader: reads each passage.
        answer_style: that of the question. The long steps of a long answer are compared with the passage by ROUGE-L,
            and kept as they are; all others are compared by their words.
        theta: the score above which a span counts; None for the reader's own threshold.
        alpha: the ROUGE-L above which a long answer agrees with the passage.
        literally: whether a span agrees if it stands in the answer as characters, as in the paper. Short steps of a
            long answer are then compared by ROUGE-L as well; a few words have hardly any ROUGE-L with a passage, so
            nearly all of them are corrected.
    """

    reader: Reader
    answer_style: AnswerStyle
    theta: float | None
    alpha: float
    literally: bool

    def __call__(self, query: str, proposed: str | None, passages: list[Passage]) -> Verdict:
        """Return the verdict; it is "silent" if the reader is not sure of any span."""
        spans = [(read(self.reader, query, passage), passage) for passage in passages]
        if not spans:
            return Verdict("silent", query)
        span, passage = max(spans, key=lambda pair: pair[0].score)
        theta = self.reader.threshold if self.theta is None else self.theta
        if not normalise(span.text) or span.score <= theta:
            return Verdict("silent", query, span=span)
        if proposed is None:
            return Verdict("supports", query, passage, span.text, span)
        answer, evidence = proposed, None
        if self.answer_style == "long" and (self.literally or len(proposed.split()) > _PHRASE):
            supports, evidence = agree_at_length(proposed, passage, self.alpha), span.text
        elif self.literally:
            supports = normalise(span.text) in normalise(proposed)
        else:
            supports, answer = agree(proposed, span.text), more_exact(proposed, span.text, passage)
        if not supports:
            return Verdict("contradicts", query, passage, span.text, span)
        return Verdict("supports", query, passage, answer, span, evidence)


def as_share(probability: float) -> float:
    """Return a probability from 0 to 1, also if the LM gave percent; 0 for NaN."""
    share = probability / 100 if probability > 1 else probability
    return min(share, 1.0) if share > 0 else 0.0


def _logit(probability: float) -> float:
    bounded = min(max(probability, 1 - _CERTAIN), _CERTAIN)
    return math.log(bounded / (1 - bounded))
