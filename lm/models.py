"""What is known of an LM before it is asked."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def is_served(lm: Any) -> bool:
    """Return whether DSPy asks the LM over a connection; one in this process costs nothing and cannot stall."""
    return isinstance(getattr(lm, "engine", None), str)


@lru_cache(maxsize=64)
def facts_of(model: str) -> dict[str, Any]:
    """Return what DSPy's list of models says of one: its prices, its window; nothing if it is not there."""
    from dspy.clients.model_metadata import model_info  # reads a file; questree keeps DSPy from fetching a newer one

    provider, _, name = model.partition("/")
    facts: dict[str, Any] = model_info(provider, name) if name else {}
    return facts
