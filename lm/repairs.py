"""Repairs of replies: of malformed JSON within bounds, and of XML that does not escape its text.

DSPy repairs what a reply gives for a list or an object. That takes time by the square of the length: six seconds for
20,000 characters, ten minutes for 200,000. A thread that repairs cannot be stopped, so a server could keep all cores
busy with replies of that kind, long after their questions had failed.

DSPy repairs no XML: an LM that writes "AT&T" or "1 < 2" in its answer, as people do, would fail its question.
"""

from __future__ import annotations

import json
import re
from typing import Any

import dspy
import json_repair
from dspy.utils.exceptions import AdapterParseError

LONGEST = 10_000  # characters

_library: Any = json_repair
_repaired = _library.loads
_parsed = dspy.XMLAdapter.parse

_AND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[\da-fA-F]+);)")
_LESS = re.compile(r"<(?![A-Za-z_/])")


def mend_repairs() -> None:
    """Make DSPy repair no JSON that is longer than that, and read XML whose text is not escaped.

    In a longer JSON, the first value has to be whole.
    """
    _library.loads = _loads
    dspy.XMLAdapter.parse = _parse_xml


def _parse_xml(adapter: dspy.XMLAdapter, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
    """Return the fields of a reply in XML; what can begin neither a tag nor an entity is text."""
    fields: dict[str, Any] = _parsed(adapter, signature, _LESS.sub("&lt;", _AND.sub("&amp;", completion)))
    return fields


def _loads(text: str, *given: Any, **how: Any) -> Any:
    """Return the value of a JSON text, repaired if need be.

    Raises:
        AdapterParseError: if the text is too long to be repaired.
    """
    if len(text) <= LONGEST:
        return _repaired(text, *given, **how)
    start = min((text.find(bracket) for bracket in "{[" if bracket in text), default=0)
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError) as error:
        fault = f"{len(text):,} characters that are no JSON; at most {LONGEST:,} are repaired"
        raise AdapterParseError("json_repair", dspy.Signature, text, fault) from error
