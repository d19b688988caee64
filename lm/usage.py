"""What DSPy has to note of a reply so that it can be counted: whether the server sent it, and what it took."""

from __future__ import annotations

from typing import Any

import dspy

_ENTRIES = 8  # of a history, at least: a predictor's call may be more than one request


class Usage:
    """A usage tracker. DSPy adds the usage of replies that came from the server, and of no others."""

    def __init__(self, outer: Any):
        self.outer, self.added = outer, False

    def add_usage(self, lm: str, usage: dict[str, Any]) -> None:
        """Note that the reply came from the server."""
        self.added = True
        if self.outer is not None:
            self.outer.add_usage(lm, usage)


def with_history() -> dict[str, Any]:
    """Return the settings of DSPy under which an LM keeps its history, which budgets and cut replies are read from."""
    return {"disable_history": False, "max_history_size": max(dspy.settings.max_history_size, _ENTRIES)}
