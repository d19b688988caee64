"""Answering outright, after some reasoning, or from passages alone: what most baselines end in."""

from __future__ import annotations

import dspy

from .answer_style import AnswerStyle, answer_style_field


class Answer(dspy.Signature):
    """Answer the question."""

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")


class AnswerStepByStep(dspy.Signature):
    """Think the question through step by step, then answer it."""

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")


class AnswerFromPassages(dspy.Signature):
    """Answer the question from the passages, and from what you know where they are silent."""

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    passages: list[str] = dspy.InputField()
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")
