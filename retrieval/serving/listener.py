"""The listener that runs an application: until it is stopped, or in a thread while a block runs."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...common.errors import QuestreeError
from .access import check_binding

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

Ending = Callable[[], Awaitable[None]]
_START_SECONDS = 10.0
_STOP_SECONDS = 10
_IDLE_SECONDS = 60
CONNECTIONS = 512
"""The most connections at a time; what comes beyond is answered with 503."""


def serve_app(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    token: str | None = None,
    ready: Callable[[str], None] = lambda _: None,
    ending: Ending | None = None,
    behind_proxy: bool = False,
) -> None:
    """Serve until interrupted (Ctrl-C, SIGTERM); requests that are being worked on are answered first.

    Args:
        app: the application, which asks for the token itself (`RequestLimits`).
        host: an address of this machine.
        port: 0 takes a free one.
        token: that the application asks for; without one, only loopback is served.
        ready: called with the address when the server listens there.
        ending: called when it is to end, before it waits for the requests: so that it can end those that go on.
        behind_proxy: believe a proxy's headers of who asks and how (``X-Forwarded-For``). Anybody can write them, so
            uvicorn takes them from this machine, or from ``FORWARDED_ALLOW_IPS``.

    Raises:
        QuestreeError: if the address is taken or not this machine's, or needs a token.
    """
    check_binding(host, token)
    with listening(host, port) as taken:
        gc.freeze()  # what is loaded by now stays: the collector need not look through it again and again
        ready(_address(host, taken))
        with suppress(KeyboardInterrupt):  # uvicorn raises it anew when it has shut down
            _server(app, ending, behind_proxy).run(sockets=[taken])


def check_address(host: str, port: int, token: str | None) -> None:
    """Refuse an address that is taken, is not this machine's or needs a token, before anything is loaded for it."""
    check_binding(host, token)
    listening(host, port).close()


@contextmanager
def running(app: ASGIApp, **options: Any) -> Iterator[str]:
    """Run a server on a free loopback port, in a thread of this process; give its address, ``http://127.0.0.1:…``.

    Args:
        app: the application.
        options: ``ending`` and ``behind_proxy``, as for `serve_app`.

    Raises:
        RuntimeError: if it does not start.
    """
    with listening("127.0.0.1", 0) as taken:
        server = _server(app, **options)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not server.started:
                if time.monotonic() > deadline or not thread.is_alive():
                    raise RuntimeError("the server did not start")
                time.sleep(0.005)
            yield _address("127.0.0.1", taken)
        finally:
            server.should_exit = True
            thread.join(2 * _STOP_SECONDS)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    try:
        taken = socket.create_server((bare, port), family=family)
        # said to be TCP, or asyncio leaves Nagle's algorithm on, and each answer waits 40 ms for an acknowledgement
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=taken.detach())
    except OSError as problem:
        why = str(problem.strerror or problem).partition(" (while")[0]  # Python tells the address once more
        raise QuestreeError(f"{host}:{port} cannot be listened at ({why}). Choose another --port or --host.") from None


def _server(app: ASGIApp, ending: Ending | None = None, behind_proxy: bool = False) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        """A server that says when it ends."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """Call ``ending``, then wait for the requests."""
            if ending is not None:
                await ending()
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            app,
            ws="none",
            proxy_headers=behind_proxy,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            log_level="error",  # a warning is a line for each bad request, as many as someone sends
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
    )


def _address(host: str, taken: socket.socket) -> str:
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{taken.getsockname()[1]}"
