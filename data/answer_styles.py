"""The four answer styles: what an LM is told of each, and which a question of some type has."""

from __future__ import annotations

from typing import Literal

Style = Literal["short", "yes-no", "label", "long"]

ANSWER_FORMATS: dict[Style, str] = {
    "short": "a few words: a name, a date, a number",
    "yes-no": "yes or no",
    "label": "SUPPORTS, REFUTES or NOT ENOUGH INFO",
    "long": "a paragraph of a few sentences",
}
"""For each style, what the answer should look like, in words for the LM."""

_OF_TYPE: dict[str, Style] = {"boolean": "yes-no", "claim": "label", "long": "long", "long-form": "long"}


def style_of_type(kind: object) -> Style:
    """The answer style of a question's type; short where the type says nothing of it, or is none."""
    return _OF_TYPE.get(kind, "short") if isinstance(kind, str) else "short"
