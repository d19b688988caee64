"""Connections that cannot keep others waiting: whoever neither asks nor reads is left, the longest waiting first."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

from uvicorn.protocols.http.h11_impl import H11Protocol

State = Literal["head", "body", "work", "answer"]
"""What happens on a connection: a request is awaited, or the rest of one; we work; our answer is not yet read."""

_MOST = 512
"""Connections at a time, at most: beyond, the one that has been waited for longest makes room."""
_UNREAD = 256 << 20
"""Bytes of all answers that are not yet read: beyond, the oldest of these answers is given up."""
_SECONDS: dict[State, float] = {"head": 10, "answer": 60}
"""How long each is waited for; for a body see `Limits`."""


def most_connections() -> int:
    """Return how many connections are kept: a third of the files that this process may open, and 512 at most.

    As many more may be taken before one of them is counted here: those that the system holds (uvicorn's ``backlog``).
    """
    if sys.platform == "win32":
        return _MOST
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if allowed == resource.RLIM_INFINITY else min(_MOST, max(allowed // 3, 1))


class Connection(H11Protocol):
    """A connection with a bounded wait for each request's head and for each answer to be read.

    An attacker who holds connections is left before anyone who uses his at once, however many he opens.
    """

    state: State = "work"
    since: float = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection, and make room for it."""
        super().connection_made(transport)
        self._look()
        if len(self.connections) > most_connections():
            self._leave_longest("head", "body", "answer")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Take what has arrived."""
        super().handle_events()
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._stop()
        self.state = "work"
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Note that an answer is larger than what was read of it; give up others if all together are too large."""
        super().pause_writing()
        self._look()
        while self._unread() > _UNREAD and self._leave_longest("answer"):
            pass

    def resume_writing(self) -> None:
        """Note that an answer was read."""
        super().resume_writing()
        self._look()

    def shutdown(self) -> None:
        """Close the connection when the server ends; a request that has arrived whole is answered first."""
        if self.state == "body":
            self.leave()
        else:
            super().shutdown()

    def leave(self) -> None:
        """Close the connection and drop what was not read of the answer."""
        self._stop()
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        """Look at what happens now; if that is something new, begin to count its time."""
        state = self._present()
        if state == self.state:
            return
        self._stop()
        self.state, self.since = state, self.loop.time()
        if state in _SECONDS:
            self._timer = self.loop.call_later(_SECONDS[state], self.leave)

    def _present(self) -> State:
        if self.flow.write_paused:
            return "answer"
        if self.cycle is None or self.cycle.response_complete:
            return "head"
        return "body" if self.cycle.more_body else "work"

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _others(self) -> list[Connection]:
        return [one for one in self.connections if isinstance(one, Connection)]

    def _unread(self) -> int:
        return sum(one.transport.get_write_buffer_size() for one in self._others() if one.state == "answer")

    def _leave_longest(self, *states: State) -> bool:
        """Leave the connection that has been in one of these states for longest; return whether there was one."""
        waited_for = [one for one in self._others() if one.state in states]
        if waited_for:
            min(waited_for, key=lambda one: one.since).leave()
        return bool(waited_for)
