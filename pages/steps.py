"""What was asked outside a program, and what came back, as a page shows it: prompts with their demonstrations apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..lm.episode import EpisodeStep

Message = tuple[str, str]
"""A role, and a text."""


class ShownStep(NamedTuple):
    """An exchange.

    Attributes:
        number: among those of the question, from 1.
        kind, by: see `EpisodeStep`.
        prompt: the messages without demonstrations; empty if it is no request.
        demonstrations: each as what was asked and what was replied.
        asked: what was asked, if it is no request.
        replies: the texts that came back.
        passages: titles and texts, of a search.
        fault: why nothing came back; empty if something did.
    """

    number: int
    kind: str
    by: str
    prompt: Sequence[Message]
    demonstrations: Sequence[tuple[str, str]]
    asked: str
    replies: Sequence[str]
    passages: Sequence[tuple[str, str]]
    fault: str


def step(number: int, exchange: EpisodeStep) -> ShownStep:
    """Return an exchange as a page shows it."""
    messages = [(str(role), str(text)) for role, text in _listed(exchange.request.get("messages"))]
    first, between, last = messages[:1], messages[1:-1], messages[1:][-1:]
    came = _listed(exchange.outcome)
    request, search = exchange.kind == "request", exchange.kind == "search"
    return ShownStep(
        number=number,
        kind=exchange.kind,
        by=exchange.name,
        prompt=[*first, *last],
        demonstrations=[(one[1], other[1]) for one, other in zip(between[::2], between[1::2], strict=False)],
        asked="" if request else json.dumps(exchange.request, ensure_ascii=False),
        replies=_replies(exchange, came),
        passages=[(str(one.get("title") or one.get("id")), str(one.get("text"))) for one in came] if search else [],
        fault=f"{exchange.fault.error}: {exchange.fault.message}" if exchange.fault else "",
    )


def _replies(exchange: EpisodeStep, came: Sequence[Any]) -> list[str]:
    if exchange.kind == "request":
        return [str(one.get("text") or "") for one in came]
    return (
        []
        if exchange.kind == "search" or exchange.outcome is None
        else [json.dumps(exchange.outcome, ensure_ascii=False)]
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
