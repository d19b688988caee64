"""What the simulated model says where it has no skill: plausible words, and values of the right type.

Teleprompters ask the LM to describe data sets, propose instructions and give advice; these replies let them run
from end to end, and are of no use beyond that.
"""

from __future__ import annotations

import re
from typing import Any

from .mind import Mind
from .prompt import Field, Prompt

_ADVICE = [
    "Name every fact that the answer needs and ask for one of them in each query.",
    "Write each query so that it can be understood alone, with the names it is about.",
    "Go from the simplest fact to the final one, and leave open what you are not sure of.",
    "Weigh the passage against what you know, and give the answer in as few words as it takes.",
]
_LITERAL = re.compile(r"""'([^']*)'|"([^"]*)"|(-?\d+(?:\.\d+)?)|\b(True|False)\b""")
_SIMPLE: dict[str, Any] = {"bool": True, "int": 0, "float": 0.5}


def plausible(mind: Mind, prompt: Prompt, field: Field, salt: str) -> Any:
    """A value for an output field that nothing is known of."""
    if field.type == "str":
        return _instruction(prompt, advice(mind, prompt, salt + field.name))
    if field.type in _SIMPLE:
        return _SIMPLE[field.type]
    if field.type.startswith("Literal["):
        return mind.traits.choice(_literals(field.type), "literal", field.name, prompt.text, salt)
    if field.schema:
        return _minimal(field.schema, field.schema.get("$defs", {}))
    return [] if field.type.startswith("list") else {} if field.type.startswith("dict") else None


def advice(mind: Mind, prompt: Prompt, salt: str = "") -> str:
    """A sentence that an optimizer can take for an instruction."""
    return mind.traits.choice(_ADVICE, "advice", prompt.text, salt)


def _instruction(prompt: Prompt, sentence: str) -> str:
    """The instruction that stands in the prompt, if it names one, with the sentence after it."""
    given = [value for name, value in prompt.values.items() if "instruction" in name and isinstance(value, str)]
    return f"{given[0].strip()} {sentence}" if given and len(given[0]) < 2000 else sentence


def _literals(annotation: str) -> list[str | int | float | bool]:
    def value(found: re.Match[str]) -> str | int | float | bool:
        if found[3]:
            return float(found[3]) if "." in found[3] else int(found[3])
        return found[4] == "True" if found[4] else found[1] or found[2] or ""

    return [value(found) for found in _LITERAL.finditer(annotation)] or [""]


def _minimal(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """The smallest value that the JSON schema admits."""
    if "$ref" in schema:
        return _minimal(definitions.get(str(schema["$ref"]).rsplit("/", 1)[-1], {}), definitions)
    if "default" in schema:
        return schema["default"]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        nullable = any(option.get("type") == "null" for option in options)
        return None if nullable else _minimal(options[0], definitions)
    if "const" in schema or "enum" in schema:
        return schema.get("const", next(iter(schema.get("enum", [])), None))
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        return {name: _minimal(properties.get(name, {}), definitions) for name in schema.get("required", [])}
    return {"string": "unknown", "array": [], "integer": 0, "number": 0.5, "boolean": True}.get(schema.get("type", ""))
