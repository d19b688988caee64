"""Tracing: the reasoning path told as a text that cites its passages (SearChain, section 3.2)."""

from __future__ import annotations

import dspy
from pydantic import BaseModel, Field

from .answer_style import AnswerStyle, answer_style_field


class CitedStep(BaseModel):
    """One node of the reasoning path as it is told: query, answer, and the number of the passage behind it."""

    query: str
    answer: str | None = None
    reference: int | None = Field(default=None, description="number of the supporting passage")


class TraceAnswer(dspy.Signature):
    """Tell how the steps lead to the answer of the question, in order, and give the answer.
    After each fragment that rests on a step with a reference, write that reference's number as a mark: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    steps: list[CitedStep] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")
