"""What a question took: every LM call and search made for it, on any thread, and what was left out of its prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..retrieval import Passage
from .exchanges import Exchange
from .exchanges import Place as Place

_MOST_TOKENS = 10**9  # of one call: a server may claim a number of 400 digits, which no sum of seconds or dollars holds


class Spent(BaseModel):
    """LM calls of one question, and what they took.

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


class Dropped(BaseModel):
    """What was left out of a prompt so that it fits the LM's window.

    Attributes:
        call: the signature's name.
        passages: the beginnings of the passages that were left out, in their order.
        cut: whether the only passage that remained was shortened.
    """

    model_config = ConfigDict(frozen=True)

    call: str
    passages: tuple[str, ...] = Field(default=())
    cut: bool = False


@dataclass
class Ledger:
    """The LM calls and searches of a question; tasks that run at the same time add to it.

    Attributes:
        calls: entries of `dspy.LM` histories.
        failed: the cause of each request that got no reply.
        dropped: what was left out of prompts.
        searches: the passages of each search, best first, by its place among all (`next_place`).
        exchanges: what was asked outside the program, and what came back.
        steps: how many places were given under each place.
    """

    calls: list[dict[str, Any]] = field(default_factory=list)
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
        return add_up(self.calls).model_copy(update={"failed": len(self.failed)})

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
def part_of_a_search() -> Iterator[None]:
    """Count what the calls inside the block cost, and nothing else of them: the search that they serve is one step.

    They have no places among the question's steps, since a replay takes what the search found from what was stored.
    """
    new, outer = Ledger(), _open.get()
    place, token = _place.set(()), _open.set(new)
    try:
        yield
    finally:
        _open.reset(token)
        _place.reset(place)
        if outer is not None:
            _add_cost(new, outer)


def _add_cost(new: Ledger, outer: Ledger) -> None:
    """Add what the calls of one ledger cost to another."""
    outer.calls.extend(new.calls)
    outer.failed.extend(new.failed)
    outer.dropped.extend(new.dropped)


def enter(
    calls: list[dict[str, Any]] | None = None,
    failed: str | None = None,
    dropped: Dropped | None = None,
    found: Sequence[Passage] | None = None,
    exchange: Exchange | None = None,
) -> None:
    """Add to the open ledger, if there is one."""
    current = _open.get()
    if current is not None:
        current.calls.extend(calls or [])
        current.failed.extend([failed] if failed else [])
        current.dropped.extend([dropped] if dropped else [])
        current.exchanges.extend([exchange] if exchange else [])
        if found is not None:
            current.searches[next_place()] = found


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


def add_up(entries: list[dict[str, Any]]) -> Spent:
    """Return the sum of the entries of a `dspy.LM` history.

    An entry may say whether it came from the cache (``cached``); if it does not, an entry without usage did.
    """
    usages = [entry.get("usage") or {} for entry in entries]
    return Spent(
        calls=len(entries),
        cached=sum(entry.get("cached", not usage) for entry, usage in zip(entries, usages, strict=True)),
        tokens_in=sum(min(usage.get("prompt_tokens") or 0, _MOST_TOKENS) for usage in usages),
        tokens_out=sum(min(usage.get("completion_tokens") or 0, _MOST_TOKENS) for usage in usages),
        words_in=sum(_words(message.get("content")) for e in entries for message in e.get("messages") or []),
        words_out=sum(_words(output) for entry in entries for output in entry.get("outputs") or []),
        cost=sum((entry.get("cost") or 0.0) for entry, usage in zip(entries, usages, strict=True) if usage),
    )


def total(spent: Sequence[Spent]) -> Spent:
    """Add up what several questions cost."""
    return Spent(**{name: sum(getattr(one, name) for one in spent) for name in Spent.model_fields})


def _words(content: Any) -> int:
    """Count the words of a message or an output: a text, a list of parts, or a dict with a text."""
    if isinstance(content, str):
        return len(content.split())
    if isinstance(content, list):
        return sum(_words(part) for part in content)
    return _words(content.get("text")) if isinstance(content, dict) else 0
