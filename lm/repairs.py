"""Repair replies: malformed JSON up to a length, and values in another shape.

The library that DSPy uses repairs the JSON of a list or an object. Its time grows with the square of the length: six
seconds for 20,000 characters, ten minutes for 200,000. A thread that repairs cannot be stopped, so a server could keep
all cores busy with such replies, long after their questions had failed.

DSPy reads a value by the type of its field alone. The year 1975 for a text, "[1]" for a number, or "none" for an empty
list would fail the question after three replies, and of "[1][2]" it takes the last number. `in_shape` understands them.
It uses only the type of the field, so it works for every signature and every adapter. A validator in a signature
would not be called: DSPy drops what `Annotated` adds to the type of a field.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import json_repair
from pydantic import BaseModel

from ..common.text import text_or_none

LONGEST = 10_000  # characters
LONGEST_WORD = 200  # characters of a number, a yes or no, or a choice, including a remark
_AROUND = " \t\n*`\"'"
_REMARK = re.compile(r"(?:\s*\n|\s*[,;:.*–—]+\s+|\s+[(-]\s*)(?=[^\W\d]).*", re.DOTALL)  # words, and no other number
_NONE_OF = re.compile(
    r"\W*(?:nothing|none of .{0,80}|no (?:new |relevant )?(?:notes?|facts?|passages?).{0,40})\W*", re.I
)
_NUMBER = re.compile(r"(?:passage |no\. ?|#)?[\[(]?(\d+)[\])]?", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:[\d\s\[\]{},;&>#]|and|passages?)+\.?", re.IGNORECASE)
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")
_FENCED = re.compile(r"```(?:json)?\s(.*)```", re.DOTALL | re.IGNORECASE)
_WRAPPED = re.compile(r"(\*\*|__|```|`)(?:(?<=```)\w*\n)?((?:(?!\1).)+)\1", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*•]|(?:\*\*)?(?:step )?\d{1,2}[.):](?:\*\*)?)\s+(\S.*)", re.IGNORECASE)


def json_value(text: str) -> Any:
    """Return the value of a JSON text. A short text is repaired; of a long one, the first value must be whole.

    Raises:
        ValueError: if the text is too long to be repaired.
    """
    if len(text) <= LONGEST:
        return json_repair.loads(text)
    start = min((text.find(bracket) for bracket in "{[" if bracket in text), default=0)
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{len(text):,} characters that are no JSON; at most {LONGEST:,} are repaired") from error


def json_object(reply: str) -> dict[str, Any]:
    """Return the first object in a reply; text before its brace, such as a copied passage, is ignored.

    Raises:
        ValueError: there is none, or it is too long to be repaired.
    """
    held = json_value(reply[max(reply.find("{"), 0) :])
    for value in held if isinstance(held, list) else [held]:
        if isinstance(value, dict):
            return value
    raise ValueError("there is no JSON object in it")


def json_alone(text: str) -> dict[str, Any]:
    """Return the JSON object if it is the whole text, except for a code fence around it; else an empty one."""
    fenced = _FENCED.fullmatch(text)
    with suppress(ValueError, RecursionError):
        held = json.loads(fenced[1] if fenced else text, strict=False)  # an LM may not escape a line break
        return held if isinstance(held, dict) else {}
    return {}


def in_shape(value: Any, kind: Any) -> Any:
    """Return a reply's value in the shape of its field's type, if it clearly states such a value; else unchanged.

    Args:
        value: a text, or what the reply's JSON or XML holds.
        kind: the type of the field.

    Raises:
        ValueError: if a text for a list of numbers holds several lists among words.
    """
    if get_origin(kind) is list:
        return _list(value, get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        kinds = [one for one in get_args(kind) if one is not type(None)]
        return value if value is None or len(kinds) > 1 else in_shape(value, kinds[0])
    if _is_object(value, kind):
        return _object(value, kind)
    if get_origin(kind) is dict:  # a tool's arguments
        return {} if not value or (isinstance(value, str) and text_or_none(value) is None) else value
    if kind is str:
        return _text(value)
    return _word(value, kind) if isinstance(value, str) else value


def _object(value: dict[str, Any], kind: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of an object in shape; null stands for the default of a field that has one."""
    fields = kind.model_fields
    given = {
        name: one for name, one in value.items() if one is not None or name not in fields or fields[name].is_required()
    }
    return {name: in_shape(one, fields[name].annotation) if name in fields else one for name, one in given.items()}


def _text(value: Any) -> Any:
    """Return the text of a value: digits for a number; for a list, also one in JSON, its texts or numbers joined.

    If the whole text is marked as bold or code, the marks are removed.
    """
    if isinstance(value, str) and (wrapped := _WRAPPED.fullmatch(value.strip())):
        return wrapped[2].strip()
    if isinstance(value, str) and value.startswith('["') and value.endswith('"]'):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, list) and value and all(isinstance(one, (str, int, float)) for one in value):
        return ", ".join(map(str, value))
    return "" if value is None else str(value) if isinstance(value, (int, float)) else value


def _word(text: str, kind: Any) -> Any:
    """Return the number, the probability, the yes or no, or the choice that a text states, without its remark."""
    if len(text) > LONGEST_WORD:
        return text
    bare = _REMARK.sub("", text.strip(_AROUND)).strip(_AROUND).rstrip(f"{_AROUND}.")
    if get_origin(kind) is Literal:
        choices = {str(one).casefold(): one for one in get_args(kind)}
        named = {word for word in re.findall(r"[\w-]+", text.casefold()) if word in choices}
        return choices.get(bare.casefold(), text) if len(named) < 2 else text
    if kind is int:
        number = _NUMBER.fullmatch(bare)
        return int(number[1]) if number else 0 if bare.strip() and text_or_none(text) is None else text
    if kind is float and (share := _SHARE.fullmatch(bare)):
        return float(share[1]) / 100
    return bare if kind in (bool, float) else text


def _list(value: Any, kind: Any) -> Any:
    """Return the items of a list, each in shape; null is an empty list, and XML may hold a list in its one item.

    If objects are to be listed, a single object is the only item, unless it holds just a list.
    """
    if value is None:
        return []
    if isinstance(value, (str, int)):
        value = _items(str(value), kind)
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], (str, int)):
        inner, is_list = _items(str(value[0]), kind), str(value[0]).lstrip().startswith("[")
        several = isinstance(inner, list) and (is_list or len(inner) != 1)  # the "1." of "1. FC Köln" is no list number
        value = inner if several or _is_object(inner, kind) else value
    if _is_object(value, kind):
        held = list(value.values())
        value = held[0] if len(held) == 1 and isinstance(held[0], list) else [value]
    return [in_shape(one, kind) for one in value] if isinstance(value, list) else value


def _is_object(value: Any, kind: Any) -> bool:
    return isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, BaseModel)


def _items(text: str, kind: Any) -> Any:
    """Return the items that a text clearly lists; other texts unchanged, for DSPy to read.

    Raises:
        ValueError: see `in_shape`.
    """
    says_none = len(text) <= LONGEST_WORD and (text_or_none(text) is None or _NONE_OF.fullmatch(text))
    if says_none and (text.strip() or kind in (str, int)):
        return []  # an empty text is no empty list of objects
    if kind is int and _NUMBERS.fullmatch(text) and (numbers := re.findall(r"\d+", text)):
        return numbers
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return json_value(text)
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    if kind is int and text.count("[") > 1:
        raise ValueError("several lists of numbers among words")  # DSPy would take the last one
    items = [_ITEM.fullmatch(line) for line in text.splitlines() if line.strip()]
    return [found[1] for found in items if found] if kind in (str, int) and all(items) else text
