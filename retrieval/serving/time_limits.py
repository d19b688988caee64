"""A limit on a whole exchange: httpx limits each wait, and a server that drips ends each of them in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_until: ContextVar[float] = ContextVar("questree_exchange", default=inf)
_PIECE = 64 << 10  # bytes that are written at a time


@contextmanager
def all_within(seconds: float) -> Iterator[None]:
    """Let what a client of `limit_exchanges` does in the block, in this thread, end in so many seconds.

    Raises:
        httpx.ReadTimeout, WriteTimeout, ConnectTimeout: if they are over.
    """
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def limit_exchanges(client: httpx.Client) -> httpx.Client:
    """Return the client, whose waits are now bounded by `all_within`."""
    transports: list[Any] = [client._transport, *client._mounts.values()]
    for transport in filter(None, transports):
        transport._pool._network_backend = _Network(transport._pool._network_backend)
    return client


class _Network:
    """What opens connections for httpx; those that it opens are bounded."""

    def __init__(self, network: Any) -> None:
        self._network = network

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **given: Any) -> _Stream:
        return _Stream(self._network.connect_tcp(host, port, timeout=_left(timeout), **given))

    def sleep(self, seconds: float) -> None:
        self._network.sleep(seconds)


class _Stream:
    """A connection of httpx on which each wait ends with the exchange."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        received: bytes = self._stream.read(max_bytes, timeout=_left(timeout))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], timeout=_left(timeout))

    def start_tls(self, *given: Any, timeout: float | None = None, **named: Any) -> _Stream:
        return _Stream(self._stream.start_tls(*given, timeout=_left(timeout), **named))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None) -> float | None:
    """Return the seconds of a wait: those that were asked for, or the rest of the exchange's if that is less."""
    import httpx

    left = _until.get() - time.monotonic()
    if left <= 0:
        raise httpx.ReadTimeout("the exchange took too long as a whole")
    return timeout if left == inf else min(left, inf if timeout is None else timeout)
