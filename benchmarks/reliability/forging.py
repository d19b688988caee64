"""What a stranger may put in the place of a file: other JSON, no JSON, and what is no file at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

EVIL = "http://127.0.0.1:9/v1"

FORGED = [
    *("null", "true", "0", "-1", "1.5", '"x"', '""', "[]", "{}", "[[]]", "[null]", '{"": null}', '["x", 1]'),
    *("NaN", "Infinity", "-Infinity", "1e999", "9" * 30, "9" * 5000, "-" + "9" * 19),
    *("[" * 100 + "]" * 100, "[" * 100_000 + "]" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "[" * 2000),
    *('{"a": 1, "a": 2}', r'"\ud800"', r'{"\udfff": 1}', '"\x00"', r'"\u0000"', "'x'", "undefined", "1,", '"'),
    *(json.dumps({"api_base": EVIL}), '["../program.json"]', '"../../etc/passwd"', '["program.json", "program.json"]'),
    json.dumps('<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url"}]<<CUSTOM-TYPE-END-IDENTIFIER>>'),
]
"""Texts of JSON that stand at a place where they do not belong; of the wrong kind, too large, or of no sense."""

NAMES = (
    *("/etc/passwd", "../program.json", "a/../program.json", "./program.json", "sub/program.json", "program.json\0"),
    *(
        "program.json\n",
        "..",
        ".",
        "",
        "C:program.json",
        "a\\program.json",
        "questree.json",
        "program.pkl",
        "/dev/zero",
    ),
)
"""Names of files that are none of the folder's own."""

IRREGULAR: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda place, aside: place.symlink_to(aside),
    "a dangling link": lambda place, aside: place.symlink_to(aside.with_name("nowhere")),
    "a link to a device": lambda place, aside: place.symlink_to("/dev/zero"),
    "a pipe": lambda place, aside: os.mkfifo(place),
    "a folder": lambda place, aside: place.mkdir(),
}
"""What is no regular file; it is put in a file's place, and the file itself lies aside."""


def forgeries(content: Any) -> Iterator[tuple[str, str]]:
    """Return what was done, and the text: at each place every forged text, nothing, a twin, and a stranger."""
    for path in _places(content):
        *above, key = path
        for text in FORGED:
            yield f"{path}: {text[:40]}", _replaced(content, path, text)
        forged = json.loads(json.dumps(content))
        del _at(forged, above)[key]
        yield f"{path} is missing", json.dumps(forged)
        if isinstance(key, str):
            value = json.dumps(_at(content, path))
            yield f"{path} stands twice", _replaced(content, path, f"{value}, {json.dumps(key)}: {value}")
            for stranger in ("api_base", "__class__", ""):
                beside = f'{value}, {json.dumps(stranger)}: "{EVIL}"'
                yield f"{stranger!r} beside {path}", _replaced(content, path, beside)


def whole(text: str) -> Iterator[tuple[str, bytes]]:
    """Return the whole file in other encodings, and as what is no JSON."""
    for encoding in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037"):
        yield encoding, text.encode(encoding, errors="replace")
    yield "latin-1", text.replace("q", "ü").encode("latin-1", errors="replace")
    for forged in (*FORGED, "", " ", "\n", "null null", text + text, text.replace("{", "{{"), text + "\0"):
        yield forged[:40], forged.encode()
    for end in range(1, len(text), len(text) // 12 + 1):
        yield f"cut at {end}", text[:end].encode()
    yield "bytes of no text", bytes(range(256))


def _places(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Return the path of every value inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from _places(one, *path, key)


def _at(value: Any, path: tuple[str | int, ...] | list[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value


def _replaced(content: Any, path: tuple[str | int, ...], text: str) -> str:
    *above, key = path
    forged = json.loads(json.dumps(content))
    _at(forged, above)[key] = "@forged@"
    return json.dumps(forged).replace('"@forged@"', text)
