"""One HTTP server in this process: a busy port is told in a sentence, readiness in a line, SIGTERM drains."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import uvicorn

from casework.errors import CaseworkError, UnreachableError

_STOPS = (signal.SIGTERM, signal.SIGINT)
GRACE_S = 10
"""How long requests under way get to be answered after SIGTERM, in seconds."""


def serve(application: Any, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        UnreachableError: the address cannot be listened on.
        CaseworkError: what the application needs at its start is not there.
    """
    listening = _listen(host, port)
    asyncio.run(_serve(application, listening))


async def _serve(application: Any, listening: socket.socket) -> None:
    host, port = listening.getsockname()[:2]
    config = uvicorn.Config(application, lifespan="off", log_level="warning", timeout_graceful_shutdown=GRACE_S)
    server = _Server(config)
    # The lifespan is entered here and not by the server, which would turn its error into a log line.
    async with application.router.lifespan_context(application):
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"Listening on http://{shown}:{port}", err=True)
        await server.serve(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends in peace: uvicorn raises the signal again when it has drained, which would kill what is still to close."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT as the wish to stop; the second one stops at once."""
        loop = asyncio.get_running_loop()
        for number in _STOPS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in _STOPS:
                loop.remove_signal_handler(number)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(1024)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    return made


def _cannot_listen(host: str, port: int, error: OSError) -> CaseworkError:
    if error.errno == errno.EADDRINUSE:
        return UnreachableError(f"Port {port} of {host} is in use. Give another with --port, or 0 for any free one.")
    return UnreachableError(f"{host}:{port} cannot be listened on: {error.strerror}. Give another --host or --port.")
