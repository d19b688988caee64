"""What an adapter sent, read back: the fields asked for, the inputs with their passages, the demonstrations."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from xml.etree import ElementTree
from xml.sax.saxutils import unescape

from dspy.lm15 import Request

from ..signatures.answers import FORMS

Form = Literal["chat", "json", "xml", "plain"]
Values = dict[str, Any]

_INPUTS, _OUTPUTS, _STRUCTURE = (
    "Your input fields are:",
    "Your output fields are:",
    "All interactions will be structured",
)
_FIELD = re.compile(r"^\d+\. `(\w+)` \((.*?)\):", re.MULTILINE)
_SCHEMA = re.compile(r"must adhere to the JSON schema: (\{.*)")
_JSON = ("Outputs will be a JSON object", "\nOutput field `")  # as the JSON adapter says it, and as the BAML adapter
_TAIL = re.compile(
    r"\n\s*Respond with "
    r"(?:the corresponding output fields(?:, starting with| wrapped in XML)|a JSON object in the following)"
)
_CHAT, _XML = r"^[ \t]*\[\[ ## {} ## \]\][ \t]*$", "^<{}>"  # what stands before a field
_NUMBER = re.compile(r"^\[(\d+)\] ")
_NOT_SUPPLIED = "Not supplied for this"


@dataclass(frozen=True)
class Field:
    """One field of the signature, as the system text lists it.

    Attributes:
        type: in the adapter's spelling, such as ``str`` or ``list[Step]``.
    """

    name: str
    type: str = "str"
    schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class Prompt:
    """A request to the LM, read.

    Attributes:
        form: how the reply must look; ``plain`` where no DSPy signature was found.
        outputs: the fields asked for, in order.
        values: the inputs of the last user message; typed ones decoded from JSON.
        demos: demonstrations with every output, inputs and outputs together; an input may be missing.
        text: everything that was sent; the key of draws that differ with any word of it.
    """

    form: Form
    text: str
    inputs: tuple[Field, ...] = ()
    outputs: tuple[Field, ...] = ()
    values: Values = field(default_factory=dict)
    demos: tuple[Values, ...] = ()

    def given(self, name: str) -> str:
        """Return an input as text; empty where it is not given, or null."""
        value = self.values.get(name)
        return "" if value is None else str(value)

    def texts(self, name: str) -> list[str]:
        """Return the texts of an input that is a list, or the only one of an input that is a text."""
        value = self.values.get(name)
        return [str(row) for row in value] if isinstance(value, list) else [value] if isinstance(value, str) else []


@dataclass(frozen=True)
class Shown:
    """A passage of a prompt.

    Attributes:
        number: as printed before it, or its place from 1.
        text: ``title | text``.
    """

    number: int
    text: str


def read_shown(value: Any) -> list[Shown]:
    """Return the passages of an input field, numbered or not."""
    rows = [str(row) for row in value] if isinstance(value, list) else []
    found = [(_NUMBER.match(row), row) for row in rows]
    return [
        Shown(int(number[1]), row[number.end() :]) if number else Shown(place, row)
        for place, (number, row) in enumerate(found, start=1)
    ]


def split_title(passage: str) -> tuple[str, str]:
    """Return title and text of a passage shown as ``title | text``; the title is empty where it has none."""
    title, bar, text = passage.partition(" | ")
    return (title, text) if bar else ("", passage)


def read_prompt(request: Request) -> Prompt:
    """Read a request that DSPy's chat, JSON, XML or BAML adapter wrote; any other is ``plain``.

    Only field names that the system text lists are looked for, and inputs only in the last user message. So
    neither an instruction that an optimizer rewrote nor a marker inside a passage changes what is read.
    """
    parts = request.system or ""
    system = parts if isinstance(parts, str) else "".join(getattr(part, "text", "") for part in parts)
    turns = [(message.role, message.text or "") for message in request.messages]
    text = "\n".join([system, *(f"{role}: {content}" for role, content in turns)])
    inputs, outputs = _listed(system, _INPUTS, _OUTPUTS), _listed(system, _OUTPUTS, _STRUCTURE)
    users = [content for role, content in turns if role == "user"]
    if not outputs or not users:
        return Prompt(form="plain", text=text)
    structure = system[system.find(_STRUCTURE) :]
    by_tags = re.search(_XML.format(re.escape(outputs[0].name)), structure, re.MULTILINE)
    form: Form = "json" if any(said in system for said in _JSON) else "xml" if by_tags else "chat"
    marker = _XML if form == "xml" else _CHAT
    return Prompt(
        form=form,
        text=text,
        inputs=inputs,
        outputs=tuple(Field(f.name, f.type, _schema(system, f.name)) for f in outputs),
        values=_name_style(_sections(_without_tail(users[-1]), inputs, marker)),
        demos=tuple(_demos(turns[:-1], inputs, outputs, form, marker)),
    )


def _listed(system: str, begin: str, end: str) -> tuple[Field, ...]:
    """Return the fields listed between the first two such headings: instructions stand after them."""
    start = system.find(begin)
    stop = system.find(end, start)
    if start < 0 or stop < 0:
        return ()
    return tuple(Field(found[1], found[2]) for found in _FIELD.finditer(system[start:stop]))


def _schema(system: str, name: str) -> dict[str, Any] | None:
    """Return the JSON schema that the adapter notes beside an output field."""
    for line in system.splitlines():
        if not line.lstrip().startswith((f"{{{name}}}", f'"{name}": ')):
            continue
        if line.lstrip().startswith('"'):  # in the JSON form, the note is inside a JSON string
            line = str(_decoded(line.split(": ", 1)[1].rstrip().rstrip(",")))
        found = _SCHEMA.search(line)
        schema = _decoded(found[1]) if found else None
        return schema if isinstance(schema, dict) else None
    return None


def _demos(
    turns: list[tuple[str, str]], inputs: tuple[Field, ...], outputs: tuple[Field, ...], form: Form, marker: str
) -> Iterator[Values]:
    """Yield the demonstrations that lack no output."""
    for (role, content), (next_role, reply) in itertools.pairwise(turns):
        if (role, next_role) != ("user", "assistant"):
            continue
        replied = _decoded(reply) if form == "json" else _sections(reply, outputs, marker)
        replied = replied if isinstance(replied, dict) else {}
        if not any(str(replied.get(f.name, _NOT_SUPPLIED)).startswith(_NOT_SUPPLIED) for f in outputs):
            yield {**_sections(_without_tail(content), inputs, marker), **replied}


def _name_style(values: Values) -> Values:
    """Return the values with the name of the answer style in the place of its description."""
    style = next((style for style, form in FORMS.items() if form == values.get("answer_style")), None)
    return values | {"answer_style": style} if style else values


def _sections(content: str, fields: tuple[Field, ...], marker: str) -> Values:
    """Return the value of each field that has a marker.

    The last field is looked for first, and the others before it: so a marker inside the value of an earlier field,
    where passages stand, is never taken for the field itself.
    """
    values: Values = {}
    for one in reversed(fields):
        markers = list(re.finditer(marker.format(re.escape(one.name)), content, re.MULTILINE))
        if markers:
            rest = content[markers[-1].end() :]
            if marker == _XML:
                raw = rest.rsplit(f"</{one.name}>", 1)[0].strip()
                values[one.name] = unescape(raw) if one.type == "str" else _nested(raw)
            else:
                raw = rest.split("\n[[ ## completed ## ]]")[0].strip()
                values[one.name] = raw if one.type == "str" else _decoded(raw)
            content = content[: markers[-1].start()]
    return {one.name: values[one.name] for one in fields if one.name in values}


def _without_tail(content: str) -> str:
    """Return a user message without the adapter's closing request."""
    tails = list(_TAIL.finditer(content))
    return content[: tails[-1].start()] if tails else content


def _decoded(raw: str) -> Any:
    """Return the JSON value, or the text itself if it is not JSON (the adapter writes null as ``None``)."""
    if raw == "None":
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def _nested(raw: str) -> Any:
    """Return the value of nested tags, as the XML adapter writes typed outputs; it writes typed inputs as JSON."""
    if not raw.startswith("<"):
        return _decoded(unescape(raw))
    try:
        return _value(ElementTree.fromstring(f"<value>{raw}</value>"))
    except ElementTree.ParseError:
        return raw


def _value(element: ElementTree.Element) -> Any:
    children = list(element)
    if not children:
        return {"": None, "True": True, "False": False}.get(element.text or "", element.text)
    if all(child.tag == "item" for child in children):
        return [_value(child) for child in children]
    return {child.tag: _value(child) for child in children}
