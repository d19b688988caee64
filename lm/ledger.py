"""What a question took: every LM call and search made for it, on any thread, and what was left out of its prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum
from operator import attrgetter, mul
from typing import Any

import dspy

from ..common.caches import remembering
from ..retrieval import Passage
from .exchanges import Dropped as Dropped
from .exchanges import Exchange, Took
from .exchanges import Place as Place
from .exchanges import Spent as Spent

_ENTRIES = 8  # of an LM's history, at least: a predictor's call may be more than one request
_AMOUNTS = tuple(Spent.model_fields)
_amounts = attrgetter(*_AMOUNTS)
_MOST_TOKENS = 10**9  # of one call: a server may claim a number of 400 digits, which no sum of seconds or dollars holds


@dataclass
class Ledger:
    """The LM calls and searches of a question; tasks that run at the same time add to it.

    Attributes:
        calls: what each request took, or several.
        failed: the cause of each request that got no reply.
        dropped: what was left out of prompts.
        searches: the passages of each search, best first, by its place among all (`next_place`).
        exchanges: what was asked outside the program, and what came back.
        steps: how many places were given under each place.
    """

    calls: list[Spent] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    searches: dict[Place, Sequence[Passage]] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    steps: Counter[Place] = field(default_factory=Counter)

    @property
    def found(self) -> list[Sequence[Passage]]:
        """Return what each search found, in the order in which the program asks, whichever thread was the fastest."""
        return [found for _, found in sorted(self.searches.items(), key=lambda entry: entry[0])]

    @property
    def spent(self) -> Spent:
        """Return the sum of the calls."""
        return total(self.calls).model_copy(update={"failed": len(self.failed)})

    @property
    def took(self) -> Took | None:
        """Return all that the calls took; None if there were none."""
        if not (self.calls or self.failed or self.dropped):
            return None
        return Took(spent=total(self.calls), failed=tuple(self.failed), dropped=tuple(self.dropped))

    @property
    def causes(self) -> dict[str, int]:
        """Return the number of requests without a reply, by cause."""
        return dict(Counter(self.failed))


_open: ContextVar[Ledger | None] = ContextVar("questree_ledger", default=None)
_place: ContextVar[Place] = ContextVar("questree_place", default=())


@contextmanager
def ledger() -> Iterator[Ledger]:
    """Collect what is done inside the block, also on threads that run in a copy of the context.

    A ledger around it gets the same when the block ends, also if it raises. The steps inside have places of their own
    among its steps.
    """
    new, outer = Ledger(), _open.get()
    place = _place.set(next_place())
    token = _open.set(new)
    try:
        yield new
    finally:
        _open.reset(token)
        _place.reset(place)
        if outer is not None:
            _add_cost(new, outer)
            outer.exchanges.extend(new.exchanges)
            for found in new.found:
                enter(found=found)


@contextmanager
def part_of_an_exchange() -> Iterator[Ledger]:
    """Count what the calls inside the block cost, and nothing else of them: what they serve is one step.

    They have no places among the question's steps, since a replay takes the outcome of the whole from what was stored.
    """
    new, outer = Ledger(), _open.get()
    place, token = _place.set(()), _open.set(new)
    try:
        yield new
    finally:
        _open.reset(token)
        _place.reset(place)
        if outer is not None:
            _add_cost(new, outer)


def is_open() -> bool:
    """Return whether this is part of a question: what it costs is counted."""
    return _open.get() is not None


def _add_cost(new: Ledger, outer: Ledger) -> None:
    """Add what the calls of one ledger cost to another, as one sum: a replay, which knows the sum alone, adds it so."""
    outer.calls.extend([total(new.calls)] if new.calls else [])
    outer.failed.extend(new.failed)
    outer.dropped.extend(new.dropped)


def enter(
    spent: Sequence[Spent] = (),
    failed: str | None = None,
    dropped: Dropped | None = None,
    found: Sequence[Passage] | None = None,
    exchange: Exchange | None = None,
) -> None:
    """Add to the open ledger, if there is one."""
    current = _open.get()
    if current is not None:
        current.calls.extend(spent)
        current.failed.extend([failed] if failed else [])
        current.dropped.extend([dropped] if dropped else [])
        current.exchanges.extend([exchange] if exchange else [])
        if found is not None:
            current.searches[next_place()] = found


def enter_stored(exchange: Exchange) -> None:
    """Add an exchange of a replay to the open ledger, and what the calls inside it took."""
    enter(exchange=exchange)
    current, took = _open.get(), exchange.took
    if current is not None and took is not None:
        current.calls.append(took.spent)
        current.failed.extend(took.failed)
        current.dropped.extend(took.dropped)


def next_place() -> Place:
    """Return the place of this thread's next step, such as a search, among all steps of the open ledger."""
    current, here = _open.get(), _place.get()
    if current is None:
        return here
    current.steps[here] += 1
    return (*here, current.steps[here])


def here() -> Place:
    """Return the place under which this context's steps are counted: which of several tasks it is."""
    return _place.get()


def stand_at(place: Place) -> None:
    """Count the steps of this context under a place: those of one task of several that run at the same time."""
    _place.set(place)


class Usage:
    """A usage tracker. DSPy adds the usage of replies that came from the server, and of no others.

    Attributes:
        sends: how many requests its connection has sent.
    """

    def __init__(self, outer: Any):
        self.outer, self.added, self.sends = outer, False, 0

    def note_sent(self) -> None:
        """Note that a request is about to be sent."""
        self.sends += 1
        if isinstance(self.outer, Usage):
            self.outer.note_sent()

    def add_usage(self, lm: str, usage: dict[str, Any]) -> None:
        """Note that the reply came from the server."""
        self.added = True
        if self.outer is not None:
            self.outer.add_usage(lm, usage)

    def described(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return entries of the LM's history with what this knows: several replies may be several requests."""
        many = [1 if not self.added else max(len(entry.get("outputs") or [1]), 1) for entry in entries]
        return [
            {"cached": not self.added, "requests": min(count, self.sends or count), **entry}
            for count, entry in zip(many, entries, strict=True)
        ]


def note_sent() -> None:
    """Note that a request of the LM call in this context is about to be sent."""
    if isinstance(dspy.settings.usage_tracker, Usage):
        dspy.settings.usage_tracker.note_sent()


def with_history() -> dict[str, Any]:
    """Return the settings of DSPy under which an LM keeps its history, which budgets and cut replies are read from."""
    return {"disable_history": False, "max_history_size": max(dspy.settings.max_history_size, _ENTRIES)}


def add_up(entries: Sequence[dict[str, Any]]) -> Spent:
    """Return the sum of the entries of a `dspy.LM` history.

    An entry may say whether it came from the cache (``cached``); if it does not, an entry without usage did. It may
    also say how many requests it took (``requests``).
    """
    return _of_entry(entries[0]) if len(entries) == 1 else total([_of_entry(entry) for entry in entries])


def _of_entry(entry: dict[str, Any]) -> Spent:
    """Return what an entry took. Tokens that the server did not count are estimated: one for four bytes of text."""
    usage, texts_in, texts_out = (
        entry.get("usage") or {},
        _texts(entry.get("messages") or entry.get("prompt")),
        _texts(entry.get("outputs")),
    )
    cached = bool(entry.get("cached", not usage))
    given = [min(usage.get(name) or 0, _MOST_TOKENS) for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    tokens_in, tokens_out, both = given
    cost, is_estimate = (entry.get("cost") or 0.0) if usage else 0.0, False
    if not (cached or (tokens_in and tokens_out)):
        guessed_out = tokens_out or _estimate(texts_out)
        guessed_in = tokens_in or max(both - guessed_out, 0) or _estimate(texts_in)
        is_estimate = (guessed_in, guessed_out) != (tokens_in, tokens_out)
        tokens_in, tokens_out = guessed_in, guessed_out
        cost = cost or sum(map(mul, _prices(str(entry.get("model"))), (tokens_in, tokens_out)))
    return Spent(
        calls=entry.get("requests", 1),
        cached=cached,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        words_in=sum(map(_words_in, texts_in)),
        words_out=sum(map(_words_in, texts_out)),
        cost=cost,
        estimated=is_estimate,
    )


@lru_cache(maxsize=64)
def _prices(model: str) -> tuple[float, float]:
    """Return US dollars for a token of a prompt and of a reply; 0 where DSPy knows no price."""
    from dspy.clients.model_metadata import model_info  # reads a file

    provider, _, name = model.partition("/")
    info = model_info(provider, name) if name else {}
    return float(info.get("input_cost_per_token") or 0), float(info.get("output_cost_per_token") or 0)


def total(spent: Sequence[Spent]) -> Spent:
    """Add up what several questions cost."""
    columns = dict(zip(_AMOUNTS, zip(*map(_amounts, spent), strict=True), strict=False))
    # of nothing there are no columns: all is 0; fsum, since calls end in any order, and rounding must not depend on it
    sums: dict[str, Any] = {name: fsum(column) if name == "cost" else sum(column) for name, column in columns.items()}
    return Spent(**sums)


def _texts(content: Any) -> list[str]:
    """Return the texts of messages or outputs, each of which is a text, a list of parts, or a dict."""
    if isinstance(content, dict):
        return _texts(content.get("content") or content.get("text"))
    if isinstance(content, (list, tuple)):
        return [text for part in content for text in _texts(part)]
    return [content] if isinstance(content, str) else []


def _estimate(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "replace")) + 3 for text in texts) // 4


@remembering(256)  # the system message of a signature, most of a prompt, comes again and again
def _words_in(text: str) -> int:
    return len(text.split())
