"""What LM requests take: a `Meter` measures each LM call while DSPy sends it; everything else is a sum."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from math import ceil, fsum
from operator import attrgetter, mul
from secrets import randbits
from typing import Any

import dspy
from dspy.utils.exceptions import LMError
from pydantic import BaseModel, ConfigDict

from .failure import NEVER_SENT
from .models import facts_of, is_served
from .scope import scope, scoped

_ENTRIES = 8  # entries of an LM's history, at least, as a predictor's call may make several requests
_MOST_TOKENS = 10**9  # tokens of one call: a server may send a number of 400 digits, which would overflow every sum


class Spent(BaseModel):
    """LM calls, and what they took.

    A server saw ``calls - cached + failed`` requests, except those whose connection was refused: they count as failed.

    Attributes:
        calls: LM calls that got a reply, including those answered from the cache and those repeated.
        cached: calls that the client answered from its cache.
        failed: requests without a reply: turned away (429, 5xx), timed out, broken off, or rejected.
        tokens_in: prompt tokens of the calls that were not cached, as the server counts them.
        tokens_out: tokens of their replies.
        words_in: words of all prompts (SearChain, section 4.3.5).
        words_out: words of all replies.
        cost: in US dollars, if the client knows the model's price.
        estimated: calls whose tokens the server did not count: they are estimated, and their cost with them.
    """

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    cached: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    words_in: int = 0
    words_out: int = 0
    cost: float = 0.0
    estimated: int = 0


_AMOUNTS = tuple(Spent.model_fields)
_amounts = attrgetter(*_AMOUNTS)


def total(spent: Iterable[Spent]) -> Spent:
    """Return the sum."""
    columns = dict(zip(_AMOUNTS, zip(*map(_amounts, spent), strict=True), strict=False))
    # an empty sum has no columns; fsum, because rounding must not depend on the order in which calls end
    sums: dict[str, Any] = {name: fsum(column) if name == "cost" else sum(column) for name, column in columns.items()}
    return Spent(**sums)


class Meter:
    """Measures one LM call: what was sent for it, and what it took.

    Attributes:
        lm: the LM that is asked.
        sent: the cost of what was sent by now, as if it got no reply.
        number: the number of the call in its account's ledger, unique across all attempts.
    """

    def __init__(self, lm: dspy.BaseLM, messages: Sequence[dict[str, Any]]):
        self.lm, self.sent = lm, Spent()
        self.number = randbits(62)  # not from `random`, which an optimizer may seed
        self._messages, self._requests, self._looked_up = messages, 0, list[bool]()
        self._account: Any = scope().account
        if self._account:
            self._account.begin(self)

    def note_lookup(self, found: bool) -> None:
        """Note whether the client's cache had a reply."""
        self._looked_up.append(found)

    @property
    def is_cached(self) -> bool:
        """Return whether every reply came from the client's cache."""
        return bool(self._looked_up) and all(self._looked_up)

    def note_sent(self) -> None:
        """Count a request before it is sent; an account has it on the disk when this returns."""
        self._requests += 1
        if self._account:
            about = _spent_by({"model": self.lm.model, "messages": self._messages}, cached=False)
            self.sent = total([self.sent, about])
            self._account.send(self)

    def end(self, entries: Sequence[dict[str, Any]], error: BaseException | None = None) -> Spent:
        """Return what the call took.

        Args:
            entries: of the LM's history, one for each reply or for several samples.
            error: the error that ended the call.
        """
        samples = [max(len(entry.get("outputs") or [1]), 1) if not self.is_cached else 1 for entry in entries]
        requests = [min(count, self._requests or count) for count in samples]
        parts = [_spent_by(entry, count, cached=self.is_cached) for entry, count in zip(entries, requests, strict=True)]
        took = parts[0] if len(parts) == 1 else total(parts)
        tried = isinstance(error, LMError) and not isinstance(error, NEVER_SENT)
        tried = tried or (isinstance(error, CancelledError) and not is_served(self.lm))  # nothing counted its requests
        if failed := max(self._requests - took.calls, int(tried), 0):
            took = took.model_copy(update={"failed": failed})
        if self._account:
            self._account.end(self, took)
        return took


def note_sent() -> None:
    """Note that a request of the LM call in this context is about to be sent."""
    if (meter := scope().meter) is not None:
        meter.note_sent()


def metered(meter: Meter | None, settings: dict[str, Any], **changes: Any) -> AbstractContextManager[None]:
    """Return a context in which an LM call is measured; the LM keeps its history, from which it is measured.

    The meter reports to the account. As a DSPy callback, the account would also get each module, prompt and reply,
    which takes long.

    Args:
        settings: of DSPy in the block.
        changes: of the scope.
    """
    history = {"disable_history": False, "max_history_size": max(dspy.settings.max_history_size, _ENTRIES)}
    return scoped({**settings, **history, "callbacks": other_callbacks()}, meter=meter, **changes)


def other_callbacks() -> list[Any]:
    """Return DSPy's callbacks without the open account."""
    account = scope().account
    return [one for one in dspy.settings.callbacks if one is not account]


def _spent_by(entry: dict[str, Any], requests: int = 1, *, cached: bool) -> Spent:
    """Return what an entry of a history took. Tokens that no server counted are estimated: one for four bytes of text.

    Args:
        entry: of the history of a `dspy.LM`.
        requests: how many requests it stands for.
        cached: whether the client's cache replied.
    """
    usage = entry.get("usage") or {}
    texts_in, texts_out = _texts(entry.get("messages") or entry.get("prompt")), _texts(entry.get("outputs"))
    told = [counted(usage.get(name)) or 0 for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    tokens_in, tokens_out, both = told
    cost, is_estimate = (entry.get("cost") or 0.0) if usage else 0.0, False
    if not (cached or (tokens_in and tokens_out)):
        guessed_out = tokens_out or _estimate(texts_out)
        guessed_in = tokens_in or max(both - guessed_out, 0) or _estimate(texts_in)
        is_estimate = (guessed_in, guessed_out) != (tokens_in, tokens_out)
        tokens_in, tokens_out = guessed_in, guessed_out
        cost = cost or sum(map(mul, _prices(str(entry.get("model"))), (tokens_in, tokens_out)))
    return Spent(
        calls=requests,
        cached=cached,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        words_in=sum(map(_words_in, texts_in)),
        words_out=sum(map(_words_in, texts_out)),
        cost=cost,
        estimated=is_estimate,
    )


def counted(told: Any) -> int | None:
    """Return the count that a server sent, also as 12.0 or "12"; None for an invalid one, such as -1 or "unknown"."""
    with suppress(TypeError, ValueError):
        number = told if isinstance(told, int) else float(told)
        return None if isinstance(told, bool) or not number >= 0 else ceil(min(number, _MOST_TOKENS))
    return None


def _prices(model: str) -> tuple[float, float]:
    """Return US dollars for a token of a prompt and of a reply; 0 where DSPy knows no price."""
    facts = facts_of(model)
    return float(facts.get("input_cost_per_token") or 0), float(facts.get("output_cost_per_token") or 0)


def _texts(content: Any) -> list[str]:
    """Return the texts of messages or outputs, each of which is a text, a list of parts, or a dict."""
    if isinstance(content, dict):
        return _texts(content.get("content") or content.get("text"))
    if isinstance(content, (list, tuple)):
        return [text for part in content for text in _texts(part)]
    return [content] if isinstance(content, str) else []


def _estimate(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "replace")) + 3 for text in texts) // 4


@lru_cache(maxsize=256)  # the system message, most of a prompt, is the same for each call of a signature
def _words_in(text: str) -> int:
    return len(text.split())
