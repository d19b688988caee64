"""What the demonstration of a prompt is made of: one of its output fields says so."""

from __future__ import annotations

from typing import Any, Literal

import dspy

Role = Literal[
    "the plan", "a step checked", "a step read", "facts among passages", "facts in their order", "facts reviewed"
]
"""Parts of an annotated question."""


def made_of(role: Role, field: Any) -> Any:
    """Return an output field, which now says of what part of an annotated question its demonstration is made."""
    field.json_schema_extra["made_of"] = role  # beside DSPy's own; no prompt and no state holds it
    return field


def role_of(signature: type[dspy.Signature]) -> Role | None:
    """Return what the demonstrations of a signature are made of, or None if annotations do not show it."""
    roles = (field.json_schema_extra.get("made_of") for field in signature.output_fields.values())
    return next(filter(None, roles), None)
