"""JSON that a stranger may have written: it is read once, within bounds, and refused where it is not what it should be.

Everything here raises a ``ValueError`` that says in a line what is wrong; the caller adds which file it is, and what to
do about it.
"""

from __future__ import annotations

import json
import os
import stat
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from .text import printable

T = TypeVar("T")

LARGEST = 64 << 20  # bytes of a file
DEEPEST = 64  # levels of lists and objects
_DIGITS = 19  # of an integer
_SHOWN = 200  # characters of what is wrong


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
    with open(path, "rb", opener=_open) as file:
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
    return path.read_text(encoding="utf-8-sig")


def check_regular(found: os.stat_result) -> None:
    """Check that what was found is a regular file.

    Raises:
        ValueError: if it is none.
    """
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no regular file")


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))  # Windows has neither


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises:
        ValueError: if it is none; also if a key stands twice in an object, a number is huge, infinite or none, a text
            holds half a character, or lists and objects are nested too deep.
    """
    try:
        value = json.loads(
            content.decode(),
            object_pairs_hook=_without_twins,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_short,
        )
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    _check_depth_and_texts(value)
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


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return content


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


def _short(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError("a number is too large")
    return int(text)


def _check_depth_and_texts(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += [*one, *one.values()]
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str):
                one.encode()  # raises for half of a surrogate pair, which could not be written down again
        if not below:
            return
        level = below
    raise ValueError("it is nested too deep")
