"""What DSPy makes anew for every request, made once: the system message of a signature, what checks a type."""

from __future__ import annotations

import copy
from functools import lru_cache, partial
from typing import Any

import dspy
from dspy.adapters import utils, xml_adapter
from pydantic import TypeAdapter

from .guard import ADAPTERS


def keep_type_adapters() -> None:
    """Make DSPy take one pydantic adapter for each type: it makes one for each field of each prompt and reply."""
    utils.TypeAdapter = xml_adapter.TypeAdapter = _type_adapter


def _type_adapter(kind: Any) -> TypeAdapter[Any]:
    try:
        hash(kind)
    except TypeError:  # a type with an annotation that has no hash
        return TypeAdapter(kind)
    return _kept_adapter(kind)


@lru_cache(maxsize=512)
def _kept_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


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
    fields = tuple((name, str(info.json_schema_extra)) for name, info in signature.model_fields.items())
    return _kept(kind, signature, signature.__doc__, fields)


@lru_cache(maxsize=512)
def _kept(kind: Any, signature: Any, instructions: str, fields: Any) -> str:
    """Return the system message of a signature with these instructions and fields, which may be changed in place."""
    message: str = kind().format_system_message(signature)
    return message
