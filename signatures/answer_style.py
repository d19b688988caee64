"""What the final answer should look like; every program that answers takes it as an input."""

from __future__ import annotations

from typing import Any, Literal

import dspy

AnswerStyle = Literal["short", "yes-no", "label", "long"]


def answer_style_field() -> Any:
    """The input field that tells the LM the form of the final answer."""
    return dspy.InputField(
        desc="short: a name, date, number or phrase; yes-no: yes or no; "
        "label: SUPPORTS, REFUTES or NOT ENOUGH INFO; long: a paragraph"
    )
