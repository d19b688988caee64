"""The reply to a prompt: a skill's values, or plausible ones; as text in the adapter's form, sometimes malformed."""

from __future__ import annotations

import ast
import json
import re
from typing import Any
from xml.sax.saxutils import escape

from .asked import Asked
from .mind import Mind
from .prompt import Field, Prompt, Values
from .skills import SKILLS

_ADVICE = [
    "Name every fact that the answer needs and ask for one of them in each query.",
    "Write each query so that it can be understood alone, with the names it is about.",
    "Go from the simplest fact to the final one, and leave open what you are not sure of.",
    "Weigh the passage against what you know, and give the answer in as few words as it takes.",
]
_SIMPLE: dict[str, Any] = {"bool": True, "int": 0, "float": 0.5}


def write_reply(mind: Mind, prompt: Prompt, salt: str = "") -> str:
    """Write the model's whole reply to a prompt; see `Asked` for the salt."""
    asked = Asked(mind, prompt, salt)
    if prompt.form == "plain":
        return _advise(asked)
    values = respond(asked)
    if mind.traits.chance("malformed", prompt.text, salt) < mind.traits.malformed:
        return _malform(asked, values)
    if prompt.form == "json":
        return json.dumps(values, ensure_ascii=False, indent=2)
    if prompt.form == "xml":
        return "\n\n".join(f"<{name}>\n{_as_xml(value)}\n</{name}>" for name, value in values.items())
    sections = [f"[[ ## {name} ## ]]\n{_show(value)}" for name, value in values.items()]
    return "\n\n".join([*sections, "[[ ## completed ## ]]"])


def respond(asked: Asked) -> Values:
    """Return a value for every output field: those of the first fitting skill, and plausible ones for the rest.

    So a signature without a skill is answered, too. Teleprompters also ask the LM to describe data sets, propose
    instructions and give advice: plausible values let them run from end to end, and are of no use beyond that.
    """
    values: Values = {}
    skill = next((skill for skill in SKILLS if skill.fits(asked.prompt)), None)
    if skill is not None:
        values = skill.reply(asked)
        if asked.mind.traits.credulous:
            values = asked.judge.mislead(values)
    return {f.name: values[f.name] if f.name in values else _invent(asked, f) for f in asked.prompt.outputs}


def pieces(text: str) -> list[str]:
    """Return a reply in the pieces that it is streamed in: each word with the blanks before it."""
    return re.findall(r"\s*\S+|\s+$", text) or [text]


def cut(text: str, max_tokens: int | None) -> tuple[str, bool]:
    """Return the text up to a number of tokens, counted as words, and whether anything was cut off."""
    words = text.split(" ")
    if max_tokens is None or len(words) <= max_tokens:
        return text, False
    return " ".join(words[:max_tokens]), True


def _show(value: Any) -> str:
    """Return a value as the chat form has it; null stands as JSON where the field is a text, too."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_xml(value: Any) -> str:
    """Return a value as the XML form has it: in a tag for each item or field; null is an empty one."""
    if isinstance(value, list):
        return "".join(f"<item>{_as_xml(item)}</item>" for item in value)
    if isinstance(value, dict):
        return "".join(f"<{name}>{_as_xml(item)}</{name}>" for name, item in value.items())
    return "" if value is None else escape(str(value))


def _malform(asked: Asked, values: Values) -> str:
    """Return a reply that lacks what the adapter needs: no form at all, or everything after the first words."""
    if asked.mind.traits.chance("malformation", asked.prompt.text, asked.salt) < 0.5:
        return "Let me think about this. " + "; ".join(_show(value) for value in values.values())
    begun = {"json": "{", "xml": f"<{next(iter(values))}"}
    return begun.get(asked.prompt.form, f"[[ ## {next(iter(values))} ##")


def _invent(asked: Asked, field: Field) -> Any:
    """Return a value of the right type for an output field that no skill fills."""
    if field.type == "str":
        return _advise(asked, field.name)
    if field.type in _SIMPLE:
        return _SIMPLE[field.type]
    if field.type.startswith("Literal["):
        options = ast.literal_eval(field.type.removeprefix("Literal"))
        return asked.mind.traits.choice(options, "literal", field.name, asked.prompt.text, asked.salt)
    if field.schema:
        return _minimise(field.schema, field.schema.get("$defs", {}))
    return [] if field.type.startswith("list") else {} if field.type.startswith("dict") else None


def _advise(asked: Asked, field: str = "") -> str:
    """Return a sentence that an optimizer can take for an instruction, after the one that the prompt has, if any."""
    sentence = asked.mind.traits.choice(_ADVICE, "advice", asked.prompt.text, asked.salt + field)
    texts = [text for name, text in asked.prompt.values.items() if "instruction" in name and isinstance(text, str)]
    return f"{texts[0].strip()} {sentence}" if texts and len(texts[0]) < 2000 else sentence


def _minimise(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Return the smallest value that the JSON schema admits."""
    if "$ref" in schema:
        return _minimise(definitions.get(str(schema["$ref"]).rsplit("/", 1)[-1], {}), definitions)
    if "default" in schema:
        return schema["default"]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        nullable = any(option.get("type") == "null" for option in options)
        return None if nullable else _minimise(options[0], definitions)
    if "const" in schema or "enum" in schema:
        return schema.get("const", next(iter(schema.get("enum", [])), None))
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        return {name: _minimise(properties.get(name, {}), definitions) for name in schema.get("required", [])}
    return {"string": "unknown", "array": [], "integer": 0, "number": 0.5, "boolean": True}.get(schema.get("type", ""))
