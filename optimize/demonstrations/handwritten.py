"""Demonstrations that a person wrote, of people and places that do not exist: they are in no benchmark.

The first of each prompt shows what annotations do not hold, such as a guess or a search that missed.

To add one, write it into the file of its method, under the names of the signatures that it demonstrates. It holds each
of their fields, and its ``kind``: what it shows.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import dspy

from ...signatures.answers import describe_style

METHODS = ("searchain", "tree_of_reviews", "blendfilter", "evidence_chain")


def handwritten(signature: type[dspy.Signature]) -> list[dspy.Example]:
    """Return the demonstrations of a signature, the most important one first; none if none was written for it."""
    rows = [row for names, written in _written() if signature.__name__ in names for row in written]
    return [
        dspy.Example(augmented=True, **describe_style({name: row[name] for name in signature.fields})) for row in rows
    ]


@cache
def _written() -> list[tuple[list[str], list[dict[str, Any]]]]:
    """Return what the files hold: names of signatures, and their demonstrations."""
    texts = [files(__package__).joinpath(f"{method}.json").read_text(encoding="utf-8") for method in METHODS]
    return [(names.split(", "), rows) for text in texts for names, rows in json.loads(text).items()]
