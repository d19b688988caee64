"""JSON that a stranger may have written: it is read once, within bounds, and refused where it is not what it should be.

Everything here raises a ``ValueError`` that says in a line what is wrong; the caller adds which file it is, and what to
do about it.
"""

from __future__ import annotations

import ast
import codecs
import json
import os
import stat
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from .text import printable

T = TypeVar("T")

LARGEST = 64 << 20  # bytes of a file
_SHOWN = 200  # characters of what is wrong
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # Windows has neither


def read_bytes(path: Path, largest: float = LARGEST) -> bytes:
    """Return the bytes of a regular file. A link is not followed, and neither a pipe nor a device is waited for.

    Args:
        path: of the file.
        largest: the most bytes; infinity for no bound.

    Raises:
        ValueError: if it is no regular file, or is larger than that.
        OSError: if it cannot be read; a FileNotFoundError if it is not there.
    """
    # looked at before it is opened, since opening a device may do something, and once more when nobody can swap it
    check_regular(path.lstat())
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _CAREFULLY)) as file:
        found = os.fstat(file.fileno())
        check_regular(found)
        content = file.read(int(min(found.st_size, largest)) + 1)
    if len(content) > largest:
        raise ValueError(f"it is larger than {largest:,} bytes")
    return content


def read_text(path: Path) -> str:
    """Return the text of a file that a user named, with or without a byte order mark; a link is followed.

    Raises:
        ValueError: if it leads to a pipe or a device, which may have no end, or is not UTF-8.
        OSError: if it cannot be read.
    """
    check_regular(path.stat())
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(not_utf8(problem)) from problem


def not_utf8(problem: UnicodeDecodeError) -> str:
    """Return in which encoding a text seems to be that is not in UTF-8, and how to change that."""
    wide = problem.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    name, code = ("UTF-16", "UTF-16") if wide else ("Latin-1", "ISO-8859-1")
    return f"not UTF-8 (byte {problem.start}), it seems to be {name}; to change it: iconv -f {code} -t UTF-8 OLD > NEW"


def check_regular(found: os.stat_result) -> None:
    """Check that what was found is a regular file.

    Raises:
        ValueError: if it is none.
    """
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no regular file")


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text in UTF-8; of a key that stands twice in an object, the last.

    Raises:
        ValueError: if it is none; also if a number is infinite or none, a text holds half a character, or lists and
            objects are nested too deep.
    """
    value = from_json(content, allow_inf_nan=False)
    json.dumps(value, allow_nan=False)  # refuses 1e999, which is read as an infinite number
    return value


def validate(kind: type[T], value: Any) -> T:
    """Return a JSON value as an instance of a pydantic model or another type.

    Raises:
        ValueError: if it is none; names the first place that does not fit.
    """
    try:
        return TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        fault = "nothing of this name may stand here" if first["type"] == "extra_forbidden" else first["msg"]
        raise ValueError(printable(f"{place}: {fault}" if place else fault)[:_SHOWN]) from None


def written_list(text: str) -> Any:
    """Return what JSON, or else Python, writes so; raises various errors if neither does."""
    try:
        return json.loads(text)  # first: Python does not join the two halves in which JSON writes a flag's letters
    except ValueError:
        return ast.literal_eval(text)
