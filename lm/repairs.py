"""Repairs of malformed JSON in replies, within bounds.

DSPy repairs what a reply gives for a list or an object. That takes time by the square of the length: six seconds for
20,000 characters, ten minutes for 200,000. A thread that repairs cannot be stopped, so a server could keep all cores
busy with replies of that kind, long after their questions had failed.
"""

from __future__ import annotations

import json
from typing import Any

import dspy
import json_repair
from dspy.utils.exceptions import AdapterParseError

LONGEST = 10_000  # characters

_library: Any = json_repair
_repaired = _library.loads


def bound_repairs() -> None:
    """Make DSPy repair no text that is longer than that; in a longer one, the first value has to be whole."""
    _library.loads = _loads


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
