"""System messages, written once for each signature: DSPy writes one for every request, which takes most of its time."""

from __future__ import annotations

import copy
from functools import lru_cache, partial
from typing import Any

import dspy

from .guard import ADAPTERS


def keeping_messages(adapter: dspy.Adapter) -> dspy.Adapter:
    """Return the adapter, which writes the system message of a signature once; another's adapter as it is.

    The system message of DSPy's is made of nothing but the signature.
    """
    if type(adapter) not in ADAPTERS.values():
        return adapter
    keeping = copy.copy(adapter)
    keeping.format_system_message = partial(_system_message, type(adapter))
    return keeping


def _system_message(kind: Any, signature: Any) -> str:
    fields = tuple((name, str(info.json_schema_extra)) for name, info in signature.fields.items())
    return _kept(kind, signature, signature.instructions, fields)


@lru_cache(maxsize=512)
def _kept(kind: Any, signature: Any, instructions: str, fields: Any) -> str:
    """Return the system message of a signature with these instructions and fields, which may be changed in place."""
    message: str = kind().format_system_message(signature)
    return message
