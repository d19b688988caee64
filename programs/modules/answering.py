"""Answers to a question: outright, after some thought, or from texts."""

from __future__ import annotations

import dspy

from ...common.text import neutralise
from ...lm.call import call
from ...retrieval import Passage
from ...signatures import Answer, AnswerFromPassages, AnswerFromThoughts, AnswerStepByStep, AnswerStyle, RecallPassage
from ..citations import settle_marks


class DirectAnswer(dspy.Module):
    """Answers from memory, without a word of reasoning."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(Answer)

    def forward(self, question: str, answer_style: AnswerStyle) -> str:
        """The answer."""
        return str(call(self.answer, question=question, answer_style=answer_style).answer)


class PassageAnswer(dspy.Module):
    """Answers from texts, without a word of reasoning."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerFromPassages)

    def forward(self, question: str, answer_style: AnswerStyle, passages: list[str]) -> str:
        """The answer; ``passages`` as they are to be shown."""
        return str(call(self.answer, question=question, answer_style=answer_style, passages=passages).answer)


class StepByStepAnswer(dspy.Module):
    """Answers from memory after a chain of thought."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerStepByStep)

    def forward(self, question: str, answer_style: AnswerStyle) -> tuple[str, str, list[Passage]]:
        """The answer, the reasoning, and no references: a mark in the reasoning would point nowhere."""
        reply = call(self.answer, question=question, answer_style=answer_style)
        final_content, references = settle_marks(reply.final_content, [])
        return reply.answer, final_content, references


class ThoughtsAnswer(dspy.Module):
    """Answers as given thoughts lead to it."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerFromThoughts)

    def forward(self, question: str, answer_style: AnswerStyle, thoughts: list[str]) -> str:
        """The answer."""
        return str(call(self.answer, question=question, answer_style=answer_style, thoughts=thoughts).answer)


class Recitation(dspy.Module):
    """Writes from memory the passage that answers a question."""

    def __init__(self) -> None:
        super().__init__()
        self.recall = dspy.Predict(RecallPassage)

    def forward(self, question: str) -> str:
        """The passage, with field markers taken out: it will stand in a prompt."""
        return neutralise(str(call(self.recall, question=question).passage))
