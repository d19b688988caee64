"""What a question costs: every LM call made for it, on whichever thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel, ConfigDict


class Spent(BaseModel):
    """LM calls of one question, and what they took.

    Attributes:
        calls: LM calls, those answered from the cache and those repeated among them.
        cached: calls that the client answered from its cache.
        tokens_in: prompt tokens of the calls that were not cached, as the server counts them.
        tokens_out: likewise, tokens of the replies.
        words_in: words of all prompts (SearChain, section 4.3.5).
        words_out: words of all replies.
        cost: in US dollars, where the client knows the model's price.
    """

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    words_in: int = 0
    words_out: int = 0
    cost: float = 0.0


_history: ContextVar[list[dict[str, Any]] | None] = ContextVar("questree_ledger", default=None)


@contextmanager
def ledger() -> Iterator[list[dict[str, Any]]]:
    """Collect the LM history of everything called inside, also on threads that run in a copy of the context."""
    entries: list[dict[str, Any]] = []
    token = _history.set(entries)
    try:
        yield entries
    finally:
        _history.reset(token)


def spend(entries: list[dict[str, Any]]) -> None:
    """Add entries of a `dspy.LM` history to the ledger that is open, if one is."""
    history = _history.get()
    if history is not None:
        history.extend(entries)


def add_up(entries: list[dict[str, Any]]) -> Spent:
    """The sum of the entries of a `dspy.LM` history."""
    usages = [entry.get("usage") or {} for entry in entries]
    return Spent(
        calls=len(entries),
        cached=sum(not usage for usage in usages),
        tokens_in=sum(usage.get("prompt_tokens") or 0 for usage in usages),
        tokens_out=sum(usage.get("completion_tokens") or 0 for usage in usages),
        words_in=sum(_words(message.get("content")) for e in entries for message in e.get("messages") or []),
        words_out=sum(_words(output) for entry in entries for output in entry.get("outputs") or []),
        cost=sum((entry.get("cost") or 0.0) for entry, usage in zip(entries, usages, strict=True) if usage),
    )


def _words(content: Any) -> int:
    """Words of a message or an output: a text, a list of parts, or a dict with a text."""
    if isinstance(content, str):
        return len(content.split())
    if isinstance(content, list):
        return sum(_words(part) for part in content)
    return _words(content.get("text")) if isinstance(content, dict) else 0
