"""Every exchange of a question is entered into its ledger; in a replay, the outcome comes from what was stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar, cast

from pydantic import TypeAdapter

from .exchanges import Exchange, Fault, Kind
from .failure import CallFailedError, Cause
from .ledger import enter, enter_stored, next_place, part_of_an_exchange

T = TypeVar("T")


class Source(Protocol):
    """Where a replay takes outcomes from."""

    def take(self, begun: Exchange) -> Exchange:
        """Return the stored exchange for one that has no outcome yet."""


_source: ContextVar[Source | None] = ContextVar("questree_replay", default=None)


@contextmanager
def replaying(source: Source) -> Iterator[None]:
    """Take the outcome of every exchange in this block from a source: no LM, retriever or reader is asked."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def is_replayed() -> bool:
    """Return whether outcomes come from a source."""
    return _source.get() is not None


def begin(kind: Kind, by: str, asked: dict[str, Any]) -> tuple[Exchange, Exchange | None]:
    """Return a new exchange without its outcome and, in a replay, the stored one; else None."""
    # not checked again, which takes long: what is asked was made here, or is a text
    begun, source = Exchange.model_construct(place=next_place(), kind=kind, by=by, asked=asked), _source.get()
    return begun, None if source is None else source.take(begun)


@dataclass
class Told(Generic[T]):
    """The outcome of an exchange.

    Attributes:
        stored: whether it is known already, from a replay.
        came: the outcome.
    """

    stored: bool = False
    came: T | None = None

    @property
    def outcome(self) -> T:
        """Return the outcome of an exchange that has ended."""
        return cast("T", self.came)


@contextmanager
def exchange(kind: Kind, by: str, asked: dict[str, Any], outcome: Any) -> Iterator[Told[Any]]:
    """Enter an exchange into the ledger when the block has put its outcome into ``came``; in a replay it is there.

    Args:
        kind, by, asked: see `Exchange`.
        outcome: the type of the outcome, which can be written as JSON.

    Raises:
        CallFailedError: in a replay, if it failed then.
    """
    begun, stored = begin(kind, by, asked)
    if stored is not None:
        enter_stored(stored)
        if stored.fault is not None:
            raise CallFailedError(cast("Cause", stored.fault.error), stored.fault.message)
        yield Told(True, _adapter(outcome).validate_python(stored.came))
        return
    told = Told[Any]()
    try:
        with part_of_an_exchange() as inside:
            yield told
    except CallFailedError as error:
        fault = Fault(error=error.failure.cause, message=error.failure.message)
        enter(exchange=begun.ended(fault=fault, took=inside.took))
        raise
    except Exception as error:  # a reader's own: whoever asked it makes the same failure of it
        fault = Fault(error="reader", message=f"{type(error).__name__}: {error}")
        enter(exchange=begun.ended(fault=fault, took=inside.took))
        raise
    enter(exchange=begun.ended(_adapter(outcome).dump_python(told.came, mode="json"), took=inside.took))


@lru_cache
def _adapter(outcome: Any) -> TypeAdapter[Any]:
    return TypeAdapter(outcome)
