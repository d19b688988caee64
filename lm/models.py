"""Facts about an LM that are known before it is asked."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_SIMULATED = ("simulated", "recorded")  # prefixes of the names of simulated LMs


def is_served(lm: Any) -> bool:
    """Return whether DSPy asks the LM over a connection; one in this process costs nothing and cannot stall."""
    return isinstance(getattr(lm, "engine", None), str)


def is_simulated(lm: Any) -> bool:
    """Return whether numbers made with this LM must be called simulated: its name says so, also behind a server.

    Args:
        lm: an LM, or the name of one.
    """
    name = lm if isinstance(lm, str) else str(lm.model)
    return any(part.split(":")[0].split("-")[0] in _SIMULATED for part in name.split("/"))


def not_known(lm: Any, question: str) -> str:
    """Return a simulated LM's message on a question that it cannot know; empty for any other question or LM."""
    told = getattr(getattr(lm, "engine", None), "not_known", None)
    return told(question) if told else ""


@lru_cache(maxsize=64)
def facts_of(model: str) -> dict[str, Any]:
    """Return the facts of DSPy's list about a model: its prices, its window; none if it is not there."""
    from dspy.clients.model_metadata import model_info  # reads a file; questree keeps DSPy from fetching a newer one

    provider, _, name = model.partition("/")
    facts: dict[str, Any] = model_info(provider, name) if name else {}
    return facts
