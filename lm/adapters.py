"""DSPy's adapters as a call uses them: they accept more forms of replies, and write no text twice.

DSPy would take the first draft in an LM's thoughts for the answer; ours read the text `without_thoughts`. DSPy does
not repair XML: an LM that writes "AT&T" or "1 < 2", as people do, would fail its question. Values are read
`in_shape`, and a long JSON is not repaired. A field's name may be in capitals or small letters, and have spaces.

In the chat form, a field's first marker in DSPy's form counts. If a field has none, other forms count, such as bold
ones; if nothing is marked, a JSON object that is the whole reply counts. No input can write these.

DSPy makes the system message of a signature, and the validator of a type, anew for every request. It also describes
the form of a reply where demonstrations show it: some 100 words of each compiled prompt.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Collection
from contextlib import suppress
from enum import EnumMeta
from functools import lru_cache
from types import UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

import dspy
from dspy.adapters import baml_adapter
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.adapters.utils import apply_output_field_defaults, format_field_value, parse_value
from dspy.utils.exceptions import AdapterParseError
from pydantic import TypeAdapter, create_model
from pydantic_core import PydanticSerializationError

from .repairs import LONGEST, in_shape, json_alone, json_object, json_value
from .thoughts import without_thoughts

_format: Any = dspy.Adapter.format  # DSPy wraps the methods of each subclass for callbacks
_postprocess: Any = dspy.Adapter._call_postprocess
_S = r"[^\S\n]{0,4}"
_BEFORE = r"(?:[^\S\n]|[\ufeff\u200b*_`>#-]){0,12}"  # spaces, and the signs of bold text, code, headings and lists
_DRESSED = re.compile(  # **[[ ## Final Content ## ]]**, ### [[##answer##]], ## Answer ##
    rf"^{_BEFORE}?\[{{0,2}}{_S}##{_S}(\w[\w -]{{0,63}}?){_S}##{_S}\]{{0,2}}[*_`:]{{0,6}}(?!#)", re.MULTILINE
)
_COMPLETED = re.compile(  # at the end of a line
    rf"(?:^{_BEFORE}|[*_`]{{0,3}})\[\[{_S}##{_S}completed{_S}##{_S}\]\][^\w\n]*$", re.MULTILINE | re.IGNORECASE
)
_CUT_MARKER = re.compile(
    rf"(?:^{_BEFORE})?\[(?:\[(?:{_S}#(?:#{_S}(?:\w[\w ]{{0,63}}(?:##?{_S}\]?)?)?)?)?)?\s*\Z", re.MULTILINE
)
_AND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[\da-fA-F]+);)")
_LESS = re.compile(r"<(?![A-Za-z_/])")


def lenient(adapter: dspy.Adapter) -> dspy.Adapter:
    """Return our version of one of DSPy's adapters, with its options; any other adapter as it is."""
    kind = _OURS.get(type(adapter))
    if kind is None:
        return adapter
    ours = kind.__new__(kind)
    vars(ours).update(vars(adapter))
    return ours


def prompt_of(adapter: dspy.Adapter, signature: Any, demos: list[Any], inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a prompt; our adapters keep them until DSPy asks for the same prompt."""
    if not isinstance(adapter, _Patient):
        return list(adapter.format(signature, demos, inputs))
    adapter.written = signature, adapter.write(signature, demos, inputs)
    return adapter.written[1]


class ReplySchema(dict[str, Any]):
    """The JSON schema of a signature's outputs, as the option ``response_format``.

    `ChatAdapter` reads such a reply too, so a cached reply can be used whether this form was asked for or not.
    """

    def __init__(self, signature: Any) -> None:
        kinds: dict[str, Any] = {name: (info.annotation, ...) for name, info in signature.output_fields.items()}
        schema = create_model("Reply", **kinds).model_json_schema()
        super().__init__(type="json_schema", json_schema={"name": "reply", "schema": schema})


class _Patient:
    """The common base of our adapters.

    Attributes:
        written: a signature, and the messages that `prompt_of` wrote last; empty once they were sent.
    """

    theirs: ClassVar[Any]
    written: tuple[Any, list[dict[str, Any]]] = None, []

    def format(self, signature: Any, demos: list[dict[str, Any]], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages of a prompt; DSPy passes another signature if the model is given native functions."""
        (written, messages), self.written = self.written, (None, [])
        return messages if written is signature else self.write(signature, demos, inputs)

    def write(self, signature: Any, demos: list[dict[str, Any]], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages of a prompt, made anew."""
        return list(_format(self, signature, demos, inputs))

    def format_system_message(self, signature: Any) -> str:
        """Return the system message, which depends on the signature alone."""
        return str(_written(self.theirs, "format_system_message", signature, *_changeable(signature)))

    def user_message_output_requirements(self, signature: Any) -> str:
        """Return the end of a prompt."""
        return str(_written(self.theirs, "user_message_output_requirements", signature, *_changeable(signature)))

    def _call_postprocess(self, *given: Any) -> list[dict[str, Any]]:
        """Return the fields of an LM's outputs; a server may have sent a whole reply as thoughts."""
        processed, original, outputs, *options = given
        return list(_postprocess(self, processed, original, map(_with_text, outputs), *options))

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """Return the fields of a reply.

        Raises:
            AdapterParseError: if there is no such reply, or not all of its fields.
        """
        try:  # read once: DSPy makes a new dict of the fields each time
            said = self.said(signature, without_thoughts(completion, outputs := signature.output_fields))
            wanted = [(name, info.annotation) for name, info in outputs.items() if name in said]
            read = {name: _read(said[name], kind) for name, kind in wanted}
        except ValueError as error:
            raise AdapterParseError(self.theirs.__name__, signature, completion, str(error)) from error
        fields: dict[str, Any] = apply_output_field_defaults(signature, read)
        if fields.keys() != outputs.keys():
            raise AdapterParseError(self.theirs.__name__, signature, completion, parsed_result=fields)
        return fields

    def said(self, signature: Any, reply: str) -> dict[str, Any]:
        """Return the text or value of each field in a reply.

        Raises:
            ValueError: if the reply does not have the adapter's form.
        """
        raise NotImplementedError


class ChatAdapter(_Patient, dspy.ChatAdapter):
    """DSPy's default."""

    theirs = dspy.ChatAdapter

    def write(self, signature: Any, demos: list[dict[str, Any]], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages of a prompt, made anew; the form of a reply is left out if a demonstration shows it."""
        messages = super().write(signature, demos, inputs)
        if any(_is_whole(demo, signature) for demo in demos) and not _says_more(signature):
            fields = _written(self.theirs, "format_field_description", signature, *_changeable(signature))
            task = "All interactions will be structured as the examples are. Your objective is:"
            messages[0]["content"] = f"{fields}\n{task}\n{signature.instructions}"
        return messages

    def format_user_message_content(
        self, signature: Any, inputs: dict[str, Any], prefix: str = "", suffix: str = "", main_request: bool = False
    ) -> str:
        """Return the message with the inputs."""
        fields = [(name, info) for name, info in signature.input_fields.items() if name in inputs]
        given = [f"[[ ## {name} ## ]]\n{_shown(info, inputs[name])}" for name, info in fields]
        wanted = [self.user_message_output_requirements(signature)] if main_request else []
        return "\n\n".join([prefix, *given, *wanted, suffix]).strip()

    def said(self, signature: Any, reply: str) -> dict[str, Any]:
        """Return the text below the first marker of each field, or the fields in another form that is clear."""
        fields, names = signature.output_fields, [*signature.fields, "completed"]
        marked = reply if "completed" in fields else _COMPLETED.sub("\n[[ ## completed ## ]]", reply)
        marked = _CUT_MARKER.sub("", marked)
        if fields.keys() <= (plain := _sections(marked)).keys():
            return plain
        dressed = _sections(_DRESSED.sub(lambda found: _plain_marker(found, names), marked))
        held = json_alone(dressed[""]) if dressed.keys() <= {"", "completed"} else {}
        named = _by_field(held, fields)
        return named if len(held) == len(named) == len(fields) else dressed


class JSONAdapter(_Patient, dspy.JSONAdapter):
    """The adapter of models with structured outputs."""

    theirs = dspy.JSONAdapter
    format_user_message_content = ChatAdapter.format_user_message_content

    def said(self, signature: Any, reply: str) -> dict[str, Any]:
        """Return the values of the first object in a reply."""
        return _by_field(json_object(reply), signature.output_fields)


class BAMLAdapter(_Patient, baml_adapter.BAMLAdapter):
    """JSON with types in BAML's words."""

    theirs = baml_adapter.BAMLAdapter
    said = JSONAdapter.said


class XMLAdapter(_Patient, dspy.XMLAdapter):
    """An element for each field."""

    theirs = dspy.XMLAdapter

    def said(self, signature: Any, reply: str) -> dict[str, Any]:
        """Return the contents of the elements; a "<" or "&" that begins no tag or entity is text."""
        try:
            root = ET.fromstring(f"<reply>{_LESS.sub('&lt;', _AND.sub('&amp;', reply))}</reply>")
        except ET.ParseError as error:
            raise ValueError(f"it is no XML: {error}") from error
        fields = signature.output_fields
        held = _by_field(self._group_children(root), fields)
        return {name: self._said_as(fields[name].annotation, elements) for name, elements in held.items()}

    def _said_as(self, kind: Any, elements: list[ET.Element]) -> Any:
        """Return the content of an element as a value of the first of several types that fits."""
        schema = _schema(kind)
        ways = [schema, *schema.get("anyOf", [])]
        values = [self._elements_to_value(elements, way, schema.get("$defs", {})) for way in ways]
        for value in values if len(values) > 1 else []:
            with suppress(ValueError):
                _read(value, kind)
                return value
        return values[-1]


_OURS: dict[type[dspy.Adapter], Any] = {
    ours.theirs: ours for ours in (ChatAdapter, JSONAdapter, BAMLAdapter, XMLAdapter)
}


def _with_text(output: Any) -> Any:
    """Return an output of an LM; if it has no text, its thoughts take that place."""
    if not isinstance(output, dict) or output.get("tool_calls") or (output.get("text") or "").strip():
        return output
    return output | {"text": f"{thoughts}</think>"} if (thoughts := output.get("reasoning_content")) else output


def _sections(reply: str) -> dict[str, str]:
    """Return the text below the first marker of each name; under "" the text before all markers."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in reply.splitlines():
        if header := field_header_pattern.match(bare := line.strip()):
            sections.append((header[1], [bare[header.end() :].strip()]))
        else:
            sections[-1][1].append(line)
    return {name: "\n".join(lines).strip() for name, lines in reversed(sections)}


def _plain_marker(dressed: re.Match[str], names: Collection[str]) -> str:
    """Return a marker in DSPy's form; one with an unknown name stays as it is."""
    name = _named(dressed[1], names)
    return f"[[ ## {name} ## ]] " if name else dressed[0]


def _by_field(said: dict[str, Any], fields: Any) -> dict[str, Any]:
    """Return the value of each field; its exact name goes before another spelling of it."""
    names = {_named(name, fields): name for name in reversed(said)}
    return {field: said[field if field in said else name] for field, name in names.items() if field}


def _named(written: str, names: Collection[str]) -> str | None:
    """Return the one of the names that is meant, whatever its case and spaces; None if there is none."""
    ways = {re.sub(r"[\W_]", "", name).casefold(): name for name in names}
    return written if written in names else ways.get(re.sub(r"[\W_]", "", written).casefold())


def _read(value: Any, kind: Any) -> Any:
    value = in_shape(value, kind)
    if isinstance(value, str) and len(value) > LONGEST and str not in _kinds(kind):
        value = json_value(value)
    if kind is str or isinstance(value, str) or get_origin(kind) is Literal or isinstance(kind, EnumMeta):
        return parse_value(value, kind)
    return type_adapter(kind).validate_python(value, by_alias=True, by_name=True)


def _kinds(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _shown(info: Any, value: Any) -> Any:
    """Return a value as DSPy shows it in a prompt; DSPy would make the serializer of a list anew each time."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and info.annotation is not str:
        with suppress(PydanticSerializationError):
            return json.dumps(type_adapter(list).dump_python(value, mode="json", fallback=str), ensure_ascii=False)
    return format_field_value(info, value)


def type_adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the validator of a type, made once."""
    try:
        return _kept_adapter(kind)
    except TypeError:  # a type with an annotation that has no hash
        return TypeAdapter(kind)


@lru_cache(maxsize=512)
def _kept_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@lru_cache(maxsize=512)
def _schema(kind: Any) -> dict[str, Any]:
    return type_adapter(kind).json_schema(by_alias=False)


def _is_whole(demo: dict[str, Any], signature: Any) -> bool:
    """Return whether a demonstration has every field, as DSPy counts them."""
    return all(demo.get(name) is not None for name in signature.fields)


@lru_cache(maxsize=512)
def _says_more(signature: Any) -> bool:
    """Return whether an output's schema has a description of a field, which no demonstration shows."""
    schemas = [type_adapter(info.annotation).json_schema() for info in signature.output_fields.values()]
    models = [model for schema in schemas for model in (schema, *schema.get("$defs", {}).values())]
    return any("description" in field for model in models for field in model.get("properties", {}).values())


def _changeable(signature: Any) -> tuple[Any, ...]:
    """Return the parts of a signature that may be changed in place."""
    extras = [(name, info.json_schema_extra) for name, info in signature.model_fields.items()]
    return signature.__doc__, tuple((name, extra["desc"], extra.get("constraints")) for name, extra in extras)


@lru_cache(maxsize=1024)
def _written(theirs: Any, method: str, signature: Any, instructions: str, fields: Any) -> Any:
    """Return the text that a method of DSPy's adapter writes for a signature with these instructions and fields."""
    return getattr(theirs(), method)(signature)
