"""A destination that counts, for drills: what `casework.rehearsal.Destination` describes, without what it is for.

A subclass of `CountingServer` is the server's trade: it counts calls and effects by name, and takes its time. A
subclass of `CountingHandler` is its HTTP: it answers `GET`, `POST` and `PUT` of the trade's own paths. `/counts`,
`/latency` and `/release` are answered here. `run` makes a program of the two.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Generic, TypeVar

from casework.values import Plain, dumps, loads

LARGEST_BODY = 100_000
"""Bytes of the largest request that is read."""
LONGEST_LATENCY_S = 60

Answer = tuple[int, Plain]
"""Status and body."""
NOT_FOUND: Answer = 404, {"error": "no such path"}


class CountingServer:
    """What a destination has counted. Safe to use from several threads.

    The subclass says `called` and counts `effects`, both under `lock`. What a call does is done when it arrives; it is
    answered `latency` seconds later.
    """

    def __init__(self, latency: float = 0.0, received: Path | None = None) -> None:
        self.latency = latency
        self.lock = threading.Condition()
        self._arrivals: dict[str, list[float]] = defaultdict(list)
        self.effects: Counter[str] = Counter()
        self._received = received
        self._releases = 0
        self._in_flight: Counter[str] = Counter()

    def counts(self) -> Answer:
        """Calls, their times of arrival and effects by name, and what is in flight now."""
        with self.lock:
            arrivals: dict[str, Plain] = {name: list(times) for name, times in self._arrivals.items()}
            calls: dict[str, Plain] = {name: len(times) for name, times in self._arrivals.items()}
            flying = sorted(name for name, number in self._in_flight.items() if number > 0)
            effects: dict[str, Plain] = dict(self.effects)
            return 200, {"calls": calls, "arrivals": arrivals, "effects": effects, "in_flight": list(flying)}

    def release(self) -> Answer:
        """Answer every call that waits."""
        with self.lock:
            self._releases += 1
            self.lock.notify_all()
        return 200, {}

    def slow_down(self, seconds: Plain) -> Answer:
        """Let later calls take that long."""
        if isinstance(seconds, (str, bool, list, dict)) or seconds is None or not 0 <= seconds <= LONGEST_LATENCY_S:
            return 400, {"error": f"PUT /latency takes seconds from 0 to {LONGEST_LATENCY_S}"}
        self.latency = float(seconds)
        return 200, {"seconds": seconds}

    def called(self, name: str) -> None:
        """Count a call that arrives now. The lock is held by the caller, so that times stand in order."""
        self._arrivals[name].append(time.time())

    def take_time(self, name: str) -> None:
        """The call `name` has arrived, and is answered when this returns."""
        with self.lock:
            latency = self.latency  # as it is now: a later change is for later calls
            self._in_flight[name] += 1
            releases = self._releases
        self.arrived(name)
        with self.lock:
            self.lock.wait_for(lambda: self._releases != releases, latency)
            self._in_flight[name] -= 1

    def arrived(self, name: str) -> None:
        """Leave the file that tells a drill that the call `name` is here."""
        if self._received is not None:
            (self._received / name.replace("/", "_")).touch()


Served = TypeVar("Served", bound=CountingServer)


class CountingHandler(BaseHTTPRequestHandler, Generic[Served]):
    """HTTP around a destination; a subclass answers the paths of its own."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    served: Served

    def get(self, path: str) -> Answer:  # noqa: ARG002  # subclasses look at it
        """Answer a GET."""
        return NOT_FOUND

    def post(self, path: str, body: Mapping[str, Plain]) -> Answer:  # noqa: ARG002  # subclasses look at them
        """Answer a POST."""
        return NOT_FOUND

    def put(self, path: str, body: Mapping[str, Plain]) -> Answer:  # noqa: ARG002  # subclasses look at them
        """Answer a PUT."""
        return NOT_FOUND

    @property
    def key(self) -> str:
        """The idempotency key of the request; empty where it has none."""
        return (self.headers.get("Idempotency-Key") or "").strip()

    def do_GET(self) -> None:
        """Counts, or the trade's."""
        self._answer(*(self.served.counts() if self.path == "/counts" else self.get(self.path)))

    def do_POST(self) -> None:
        """The trade's."""
        self._answer(*self.post(self.path, self._body()))

    def do_PUT(self) -> None:
        """Another latency, the end of all waiting, or the trade's."""
        body = self._body()
        if self.path == "/release":
            return self._answer(*self.served.release())
        if self.path == "/latency":
            return self._answer(*self.served.slow_down(body.get("seconds")))
        return self._answer(*self.put(self.path, body))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """No log: it would mix with the output of whoever started this."""

    def _body(self) -> dict[str, Any]:
        try:
            length = int(self.headers.get("Content-Length") or 0)
            found = loads(self.rfile.read(length)) if 0 < length <= LARGEST_BODY else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _answer(self, status: int, body: Plain) -> None:
        content = dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # whoever asked is gone; what was done stays done


class _Server(ThreadingHTTPServer):
    """Callers of this server are killed for a living, so a connection that breaks is no news."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say something of other errors only."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(served: Served, handler: type[CountingHandler[Served]], port: int) -> ThreadingHTTPServer:
    """A server on the loopback address; port 0 takes any free one."""
    return _Server(("127.0.0.1", port), type(handler.__name__, (handler,), {"served": served}))


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that every destination takes; a trade may add its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until a call is answered")
    parser.add_argument("--received", type=Path, help="folder that gets a file for each call that arrived")
    return parser


def run(server: ThreadingHTTPServer) -> None:
    """Say where it listens, and serve until killed."""
    print(f"Listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return
