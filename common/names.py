"""Names that a user typed and that stand for nothing: which ones there are, and which was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the nearest known name as a question with a space before it, or nothing if none is near."""
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {nearest[0]!r}?" if nearest else ""


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a name that stands for nothing: it tells the nearest known name, and all of them."""
    names = list(known)
    return f"There is no {what} {name!r}.{did_you_mean(name, names)} There are: {', '.join(names)}."
