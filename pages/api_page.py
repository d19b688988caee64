"""The page of an API, from its OpenAPI description, without the scripts that such pages are usually made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from .html import as_html


class Field(NamedTuple):
    """A field of a request."""

    name: str
    kind: str
    required: bool
    default: str


class Operation(NamedTuple):
    """What can be asked at an address."""

    method: str
    path: str
    description: str
    fields: list[Field]


def api_page(description: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        description: of the API, as OpenAPI defines it.
    """
    operations = [
        Operation(method.upper(), path, one.get("description", one.get("summary", "")), _fields(one, description))
        for path, methods in description["paths"].items()
        for method, one in methods.items()
    ]
    return as_html("api.html", title=description["info"]["title"], operations=operations)


def _fields(operation: Mapping[str, Any], description: Mapping[str, Any]) -> list[Field]:
    """Return the fields of the JSON that an operation takes; none if it takes none."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = _resolved(content.get("schema", {}), description)
    required = schema.get("required", [])
    return [
        Field(name, _kind(field), name in required, json.dumps(field["default"]) if "default" in field else "")
        for name, field in schema.get("properties", {}).items()
    ]


def _resolved(schema: Mapping[str, Any], description: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return description["components"]["schemas"][name] if name else schema


def _kind(schema: Mapping[str, Any]) -> str:
    """Return a type in a few words: one of its values, its name, or several of these."""
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "items" in schema:
        return f"list of {_kind(schema['items'])}"
    return str(schema.get("type") or schema.get("$ref", "").rpartition("/")[2])
