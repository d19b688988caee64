"""Evidence fusion: the final answer from all accepted paths (ToR, section 3.3)."""

from __future__ import annotations

import dspy
from pydantic import BaseModel, Field

from .answer_style import AnswerStyle, answer_style_field


class Assertion(BaseModel):
    """What one accepted path says: its answer, and the numbers of its passages."""

    answer: str
    references: list[int] = Field(description="numbers of the passages that it rests on")


class FuseAnalyses(dspy.Signature):
    """Answer the question from the assertions, which may contradict each other: weigh them all, and what you know.
    After each fragment that rests on an assertion, write the numbers of its references as marks: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    assertions: list[Assertion] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")


class FuseParagraphs(dspy.Signature):
    """Answer the question from the passages; where they do not tell enough, from what you know.
    After each fragment that rests on a passage, write its number as a mark: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    passages: list[str] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")


class FuseEvidence(dspy.Signature):
    """Answer the question from the assertions and the passages that they refer to. Assertions may contradict each
    other: weigh them all by their passages, and by what you know; the same where nothing is asserted.
    After each fragment that rests on a passage, write its number as a mark: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    assertions: list[Assertion] = dspy.InputField()
    passages: list[str] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")
