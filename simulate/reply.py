"""The reply as text: in the adapter's form, sometimes malformed, cut at the token limit."""

from __future__ import annotations

import json
from typing import Any

from .fallback import advice
from .mind import Mind
from .prompt import Prompt, Values
from .skills import respond


def write_reply(mind: Mind, prompt: Prompt, salt: str = "") -> str:
    """The model's whole reply to a prompt.

    Args:
        mind: the model.
        prompt: what was asked.
        salt: empty at temperature 0; otherwise what makes one sample differ from another.
    """
    if prompt.form == "plain":
        return advice(mind, prompt, salt)
    values = respond(mind, prompt, salt)
    if mind.traits.chance("malformed", prompt.text, salt) < mind.traits.malformed:
        return _malformed(mind, prompt, values, salt)
    return _json(values) if prompt.form == "json" else _chat(values)


def cut(text: str, max_tokens: int | None) -> tuple[str, bool]:
    """The text up to a number of tokens, counted as words, and whether anything was cut off."""
    words = text.split(" ")
    if max_tokens is None or len(words) <= max_tokens:
        return text, False
    return " ".join(words[:max_tokens]), True


def _chat(values: Values) -> str:
    sections = [f"[[ ## {name} ## ]]\n{_shown(value)}" for name, value in values.items()]
    return "\n\n".join([*sections, "[[ ## completed ## ]]"])


def _json(values: Values) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2)


def _shown(value: Any) -> str:
    """A value as the chat form has it; null stands as JSON where the field is a text, too."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _malformed(mind: Mind, prompt: Prompt, values: Values, salt: str) -> str:
    """A reply that lacks what the adapter needs: no form at all, or everything after the first words."""
    if mind.traits.chance("malformation", prompt.text, salt) < 0.5:
        return "Let me think about this. " + "; ".join(_shown(value) for value in values.values())
    return "{" if prompt.form == "json" else f"[[ ## {next(iter(values))} ##"
