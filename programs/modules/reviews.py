"""The steps of Tree of Reviews: paragraph review and evidence fusion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import dspy

from ...common.text import query_or_none, text_or_none
from ...lm.call import call
from ...lm.window import passages_shown
from ...metrics import read_label, without_marks
from ...retrieval import Passage
from ...signatures import AnswerStyle
from ...signatures.reviews import (
    PROVEN_ITEMS,
    Assertion,
    FuseAnalyses,
    FuseEvidence,
    FuseOrGuess,
    FuseParagraphs,
    ReviewParagraphs,
    ReviewParagraphsCoT,
    ReviewPath,
)
from ..demonstrations import Judgement, note
from ..evidence import Evidence
from ..references import numbered, numbers_of, renumbered, settle_marks, supported_by
from ..tree import Action, Review
from . import StepModule
from .answers import CitedAnswer, cited_answer

Fusion = Literal["analysis", "paragraph", "evidence"]
_FUSIONS: dict[Fusion | Literal["guess"], type[dspy.Signature]] = {
    "analysis": FuseAnalyses,
    "paragraph": FuseParagraphs,
    "evidence": FuseEvidence,
    "guess": FuseOrGuess,
}

NOTHING_MISSING = re.compile(  # "None: the passages tell all", but not "None of the passages says where"
    r"(?=(\W*))\1(?:(?:nothing|none|null|nil|n/?a|empty|no|all (?:the )?(?:needed )?facts)\b"
    r"(?: (?:else|more|other|further|missing|needed|required|facts?|information|is|are|known|there|given|found))*"
    r"(?:(?: ?[.;:,–—]| -| \()(?!\s*but\b).*)?)?\W*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class ReviewOutcome:
    """A review, the action that follows from it, the answer, the next query, and a guess of what that would find."""

    review: Review
    action: Action
    answer: str | None
    next_query: str | None
    guess: str | None = None


class PathReview(StepModule):
    """A review of a path's paragraphs that also writes the query for what they lack, in one call."""

    def __init__(self, judges_last: bool = True) -> None:
        super().__init__()
        self.judges_last = judges_last
        self.review = dspy.Predict(ReviewPath)

    def forward(
        self, question: str, answer_style: AnswerStyle, passages: list[Passage], tried: list[str]
    ) -> ReviewOutcome:
        """Return the outcome; its guess is the missing paragraph (section 3.4, missing-paragraph completion).

        For a list question, each path gives the items that it proves, and may ask for passages of other items.
        """
        several = answer_style == "list"
        reply = call(
            self.review,
            drop="first",
            question=question,
            answer_style=PROVEN_ITEMS if several else answer_style,
            tried=[query for query in tried if query != question],
            passages=numbered(passages),
        )
        answer = supported_answer(reply.supported_answer, answer_style)
        complete = NOTHING_MISSING.fullmatch(reply.next_query)
        query = None if complete else query_or_none(reply.next_query)
        supported = answer is not None and (several or complete is not None)
        review = Review(relevant=reply.last_adds, supported=supported, thoughts=text_or_none(reply.facts))
        action = action_of(review.relevant, review.supported, answer)
        kind = "reject after facts" if action == "reject" and review.thoughts else action
        judgements = [_judgement(review, passages, reply, last=self.judges_last)]
        note(reply, kind, judgements, exemplary=several or (query is None) == supported)
        if query is not None and query.casefold() in {earlier.casefold() for earlier in tried}:
            query = None
        return ReviewOutcome(review, action, answer, query, text_or_none(reply.guess))


class ParagraphReview(StepModule):
    """A review of a path's paragraphs as one whole (ToR, section 3.2; table 8, with thoughts tables 7 and 13).

    Args:
        thoughts: whether the LM thinks before it judges.
        judges_last: whether a review decides about the last paragraph alone, or about all of them together. A
            demonstration must not contradict the gold passages.
    """

    def __init__(self, thoughts: bool, judges_last: bool = True) -> None:
        super().__init__()
        self.review = dspy.Predict(ReviewParagraphsCoT if thoughts else ReviewParagraphs)
        self.judges_last = judges_last

    def forward(
        self, question: str, answer_style: AnswerStyle, passages: list[Passage], tried: list[str]
    ) -> ReviewOutcome:
        """Reject what is irrelevant, accept what is enough and answers, search on from the rest."""
        shown = numbered(passages)
        reply = call(self.review, drop="first", question=question, answer_style=answer_style, passages=shown)
        thoughts = text_or_none(reply.get("thoughts") or reply.get("analysis"))
        review = Review(relevant=reply.relevant, supported=reply.supported, thoughts=thoughts)
        answer = supported_answer(reply.answer, answer_style)
        action = action_of(review.relevant, review.supported, answer)
        note(reply, action, [_judgement(review, passages, reply, last=self.judges_last)])
        return ReviewOutcome(review, action, answer, query_or_none(reply.next_query))


class EvidenceFusion(StepModule):
    """An answer from what the accepted paths assert, from their paragraphs, or from both (tables 10 to 12).

    With "guess", from both, and the LM says if it guesses.
    """

    def __init__(self, fusion: Fusion | Literal["guess"]) -> None:
        super().__init__()
        self.fuse = dspy.Predict(_FUSIONS[fusion])

    def forward(
        self, question: str, answer_style: AnswerStyle, evidence: list[Evidence], passages: list[Passage]
    ) -> CitedAnswer:
        """Return the answer, the final content, and its references: mark ``[n]`` is ``references[n-1]``.

        The passages are those of the evidence, and others that may support the answer, each once.
        """
        number, inputs = numbers_of(passages), dict[str, Any](question=question, answer_style=answer_style)
        if "assertions" in self.fuse.signature.input_fields:
            inputs["assertions"] = [
                _assertion(piece, [number[passage.id] for passage in piece.passages]) for piece in evidence
            ]
        return cited_answer(self.fuse, passages, **inputs)


def told_by(piece: Evidence, question: str) -> CitedAnswer | None:
    """Return the answer of one piece of evidence, with its facts and their marks as text; None if no mark is valid."""
    content = f"{piece.analysis.rstrip(' .')}. So the answer is {piece.answer.rstrip('.')}."
    content, references = settle_marks(content, list(piece.passages), supported_by(question))
    return CitedAnswer(piece.answer, content, references) if references else None


def _assertion(piece: Evidence, numbers: list[int]) -> Assertion:
    """Return a piece of evidence as the prompt shows it. Its review numbered the passages of its path from 1."""
    analysis = renumbered(piece.analysis, dict(enumerate(numbers, start=1)))
    return Assertion(analysis=analysis, answer=piece.answer, references=numbers)


def _judgement(review: Review, passages: list[Passage], reply: dspy.Prediction, *, last: bool) -> Judgement:
    """Return a review's decision: on the last paragraph, or on all that its prompt showed."""
    shown = 1 if last else len(passages_shown(reply))  # what does not fit the window is left out at the beginning
    return Judgement(passages[-shown:], review.relevant)


def supported_answer(answer: str | None, style: AnswerStyle) -> str | None:
    """Return the answer of a path; None without one, as when a claim's path says that it is not enough."""
    text = without_marks(answer or "")
    says_open = style in ("label", "two-label") and read_label(text) == "NOT ENOUGH INFO"
    return None if says_open else text_or_none(text)


def action_of(relevant: bool, supported: bool, answer: str | None) -> Action:
    """Return the action that follows from a review (ToR, section 3.2, iii)."""
    if not relevant:
        return "reject"
    return "accept" if supported and answer else "search"
