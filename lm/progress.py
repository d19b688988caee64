"""Events of a question while it is being answered, for a stream of `questree.stream` or ``dspy.streamify``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from typing import Literal, Protocol

import anyio
import anyio.from_thread
import dspy
from dspy.streaming import StatusMessage
from pydantic import BaseModel, ConfigDict

from ..common.event_loop import awaited, on_loop
from ..common.text import printable
from .failure import CallFailedError
from .scope import scope, scoped
from .spent import Spent


class Event(BaseModel):
    """An event of a question; ``model_dump_json()`` writes it for a client."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    def __str__(self) -> str:
        return type(self).__name__


class CallBegun(Event):
    """An LM call begins.

    Attributes:
        call: the number of the call in this process.
        signature: the name of the prompt.
    """

    kind: Literal["call_begun"] = "call_begun"
    call: int
    signature: str

    def __str__(self) -> str:
        return f"{self.signature} …"


class CallEnded(Event):
    """An LM call has ended, with or without a reply that can be used.

    Attributes:
        call, signature: as in `CallBegun`.
        spent: tokens and requests, those of repeated requests included.
    """

    kind: Literal["call_ended"] = "call_ended"
    call: int
    signature: str
    spent: Spent

    def __str__(self) -> str:
        return f"{self.signature}: {self.spent.tokens_in} tokens in, {self.spent.tokens_out} out"


class ProgressMessage(StatusMessage):
    """An event as ``dspy.streamify`` passes it on: ``message`` is a line to show, ``event`` the event itself."""

    def __init__(self, event: Event):
        super().__init__(message=" ".join(printable(str(event)).split()))
        self.event = event


class Listener(Protocol):
    """A receiver of a question's events."""

    @property
    def followed(self) -> bool:
        """Return whether anybody still reads the events."""

    def hear(self, event: Event) -> None:
        """Take an event."""


logger = logging.getLogger(__name__)

_numbers = count(1)


def telling(listener: Listener) -> AbstractContextManager[None]:
    """Return a context in which a listener gets all events, on any thread."""
    return scoped(listener=listener)


def listener() -> Listener | None:
    """Return the listener of this context; the log and DSPy's streams do not count as listeners."""
    found: Listener | None = scope().listener
    return found


def is_told() -> bool:
    """Return whether events have a receiver: a listener, a stream or the log."""
    return bool(listener() or dspy.settings.send_stream) or logger.isEnabledFor(logging.INFO)


def check_followed() -> None:
    """Fail the question if its readers have left.

    Raises:
        CallFailedError: nobody reads the stream any more.
    """
    follower, stream = listener(), dspy.settings.send_stream
    read = getattr(stream, "statistics", None)
    if (follower and not follower.followed) or (read and not read().open_receive_streams):
        raise CallFailedError("deadline", "nobody reads the stream any more")


def can_send() -> bool:
    """Return whether DSPy can send an LM's pieces from here: on an event loop or one of its threads."""
    try:
        return on_loop() or anyio.from_thread.run_sync(bool) is False
    except RuntimeError:
        return False


def tell(event: Event) -> None:
    """Send an event to the log, the listener and DSPy's stream."""
    logger.info("%s", event)
    if (follower := listener()) is not None:
        follower.hear(event)
    if (stream := dspy.settings.send_stream) is not None:
        # DSPy sends nothing from a user's own thread; after the reader has left, the stream is closed
        with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            if on_loop():
                awaited(stream.send(ProgressMessage(event)))
            else:
                anyio.from_thread.run(stream.send, ProgressMessage(event))


@contextmanager
def told_call(signature: str, spent: Callable[[], Spent]) -> Iterator[None]:
    """Send the event that an LM call begins and, with what it has spent, the event that it has ended."""
    if not is_told():
        yield
        return
    call = next(_numbers)
    tell(CallBegun(call=call, signature=signature))
    try:
        yield
    finally:
        tell(CallEnded(call=call, signature=signature, spent=spent()))
