"""The four answer styles: which a question of some type has."""

from __future__ import annotations

from typing import Literal

Style = Literal["short", "yes-no", "label", "long"]

_OF_TYPE: dict[str, Style] = {"boolean": "yes-no", "claim": "label", "long": "long", "long-form": "long"}


def style_of_type(kind: object) -> Style:
    """The answer style of a question's type; short where the type says nothing of it, or is none."""
    return _OF_TYPE.get(kind, "short") if isinstance(kind, str) else "short"
