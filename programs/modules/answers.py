"""Answers to a question: outright, after some thought, or from texts."""

from __future__ import annotations

import dspy

from ...common.text import neutralise, text_or_none
from ...lm.call import call
from ...retrieval import Passage
from ...signatures import AnswerStyle
from ...signatures.answers import Answer, AnswerFromPassages, AnswerFromThoughts, AnswerStepByStep
from ...signatures.knowledge import RecallPassage
from ..references import settle_marks, supported_by


class DirectAnswer(dspy.Module):
    """An answer from memory, without reasoning."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(Answer)

    def forward(self, question: str, answer_style: AnswerStyle) -> str:
        """Return the answer."""
        return str(call(self.answer, question=question, answer_style=answer_style).answer)


class PassageAnswer(dspy.Module):
    """An answer from texts, without reasoning."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerFromPassages)

    def forward(self, question: str, answer_style: AnswerStyle, passages: list[str]) -> str:
        """Return the answer; ``passages`` are given as the prompt shows them."""
        return str(call(self.answer, question=question, answer_style=answer_style, passages=passages).answer)


class StepByStepAnswer(dspy.Module):
    """An answer from memory after a chain of thought."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerStepByStep)

    def forward(self, question: str, answer_style: AnswerStyle) -> tuple[str, str, list[Passage]]:
        """Return the answer, the reasoning without marks (there is nothing to cite), and no references."""
        reply = call(self.answer, question=question, answer_style=answer_style)
        final_content, references = settle_marks(reply.final_content, [], supported_by(question))
        return reply.answer, final_content, references


class ThoughtsAnswer(dspy.Module):
    """An answer that follows from given thoughts."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerFromThoughts)

    def forward(self, question: str, answer_style: AnswerStyle, thoughts: list[str]) -> str:
        """Return the answer."""
        return str(call(self.answer, question=question, answer_style=answer_style, thoughts=thoughts).answer)


class Recitation(dspy.Module):
    """A passage, written from memory, that answers a question."""

    def __init__(self) -> None:
        super().__init__()
        self.recall = dspy.Predict(RecallPassage)

    def forward(self, question: str) -> str:
        """Return the passage, neutralised: it becomes part of a prompt; an empty one if the LM recalls nothing."""
        return neutralise(text_or_none(call(self.recall, question=question).passage) or "")
