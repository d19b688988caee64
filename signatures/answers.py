"""The final answer: its style, and how it is asked for outright, after some reasoning, or from texts."""

from __future__ import annotations

from typing import Any, Literal

import dspy

AnswerStyle = Literal["short", "yes-no", "label", "long"]

FORMS: dict[str, str] = {
    "short": "a name, a date, a number or a short phrase",
    "yes-no": "yes or no",
    "label": "SUPPORTS, REFUTES or NOT ENOUGH INFO",
    "long": "a paragraph",
}
"""How a prompt describes each style: the one that is asked for, and no other."""


def answer_style_field() -> Any:
    """Make the input field that tells the LM the form of the final answer; its value is one of `FORMS`."""
    return dspy.InputField(desc="the form that the answer should have")


def describe_style(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of a call with the answer style in words, where one is among them."""
    style = inputs.get("answer_style")
    return inputs | {"answer_style": FORMS[style]} if style in FORMS else inputs


def question_field() -> Any:
    """Make the input field that holds the user's question."""
    return dspy.InputField(desc="the question that is to be answered in the end")


class Answer(dspy.Signature):
    """Answer the question."""

    question: str = question_field()
    answer_style: str = answer_style_field()
    answer: str = dspy.OutputField(desc="the answer alone, in the form that it should have")


class AnswerStepByStep(dspy.Signature):
    """Think the question through step by step, then answer it."""

    question: str = question_field()
    answer_style: str = answer_style_field()
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence")
    answer: str = dspy.OutputField(desc="the answer alone, in the form that it should have")


class AnswerFromPassages(dspy.Signature):
    """Answer the question from the passages, and from what you know where they are silent."""

    question: str = question_field()
    answer_style: str = answer_style_field()
    passages: list[str] = dspy.InputField()
    answer: str = dspy.OutputField(desc="the answer alone, in the form that it should have")


class AnswerFromThoughts(dspy.Signature):
    """Answer the question as the thoughts lead to it."""

    question: str = question_field()
    answer_style: str = answer_style_field()
    thoughts: list[str] = dspy.InputField()
    answer: str = dspy.OutputField(desc="the answer alone, in the form that it should have")
