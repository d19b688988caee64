"""The final answer: its style, and how it is asked for outright, after some reasoning, or from texts."""

from __future__ import annotations

from typing import Any, Literal

import dspy

AnswerStyle = Literal["short", "yes-no", "label", "long"]


def answer_style_field() -> Any:
    """Return the input field that tells the LM the form of the final answer."""
    return dspy.InputField(
        desc="short: a name, date, number or phrase; yes-no: yes or no; "
        "label: SUPPORTS, REFUTES or NOT ENOUGH INFO; long: a paragraph"
    )


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


class AnswerFromThoughts(dspy.Signature):
    """Answer the question as the thoughts lead to it."""

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    thoughts: list[str] = dspy.InputField()
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")
