"""Paragraph review and missing-paragraph completion (ToR, sections 3.2 and 3.4)."""

from __future__ import annotations

from dataclasses import dataclass

import dspy

from ...lm.call import call
from ...retrieval import Passage
from ...signatures import AnswerStyle, CompleteParagraphs, ReviewParagraphs, ReviewParagraphsCoT
from ..tree import Action, Review


@dataclass(frozen=True)
class Verdict:
    """A review, and what follows from it: an answer to accept, or the LM's idea of what to search for next."""

    review: Review
    action: Action
    answer: str | None
    next_query: str | None


class ParagraphReview(dspy.Module):
    """Reviews the paragraphs of a path as one whole; with thoughts (table 7, and 13 for a chain) or without (8)."""

    def __init__(self, thoughts: bool) -> None:
        super().__init__()
        self.review = dspy.Predict(ReviewParagraphsCoT if thoughts else ReviewParagraphs)

    def forward(self, question: str, answer_style: AnswerStyle, passages: list[Passage]) -> Verdict:
        """Reject what is irrelevant, accept what is enough and answers, search on from the rest."""
        shown = [passage.shown() for passage in passages]
        reply = call(self.review, drop="first", question=question, answer_style=answer_style, passages=shown)
        review = Review(relevant=reply.relevant, supported=reply.supported, thoughts=reply.get("thoughts"))
        answer = said(reply.answer)
        return Verdict(review, action_of(review.relevant, review.supported, answer), answer, said(reply.next_query))


class MissingParagraph(dspy.Module):
    """Writes from memory what a path's paragraphs lack (table 9).

    The paper's prompt goes on to answer the question from it, an answer that is not used: ours does not ask for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.complete = dspy.Predict(CompleteParagraphs)

    def forward(self, question: str, passages: list[Passage]) -> str | None:
        """The missing paragraph; None if the LM wrote none."""
        shown = [passage.shown() for passage in passages]
        return said(call(self.complete, drop="first", question=question, passages=shown).information)


def action_of(relevant: bool, supported: bool, answer: str | None) -> Action:
    """What a review leads to (section 3.2, iii)."""
    if not relevant:
        return "reject"
    return "accept" if supported and answer else "search"


def said(text: str | None) -> str | None:
    """The text, or None where an LM wrote nothing, or null as a word."""
    return None if text is None or text.strip().lower() in {"", "null", "none"} else text.strip()
