"""The office as a server of its own: it keeps addresses, takes fees and sends letters, and counts, for drills.

    python -m casework.examples.repeat_safety.office --port 0 --latency 0.2 --received FOLDER

`PUT /customers/{id}/address` sets an address; it is an effect when the address changes. `POST /charges` with the header
`Idempotency-Key` charges once for each key. `POST /letters` sends a letter, each time; `GET /letters/{reference}` finds
one. What they do is done when they arrive; the answer goes out `latency` seconds later. `GET /counts`, `PUT /latency`
and `PUT /release` are those of a `casework.rehearsal.Destination`.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from casework.values import Plain, dumps, loads

LARGEST_BODY = 100_000
"""Bytes of the largest request that is read."""

Answer = tuple[int, Plain]


class Office:
    """What the office knows and has counted. Safe to use from several threads."""

    def __init__(self, latency: float = 0.0, received: Path | None = None) -> None:
        self.latency = latency
        self._received = received
        self._lock = threading.Condition()
        self._releases = 0
        self._calls: Counter[str] = Counter()
        self._effects: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()
        self._addresses: dict[str, str] = {}
        self._charges: dict[str, Plain] = {}
        self._letters: dict[str, Plain] = {}

    def set_address(self, customer_id: str, address: str) -> Answer:
        """Put an address on record."""
        name = f"set_address:{customer_id}"
        with self._lock:
            self._calls[name] += 1
            self._effects[name] += self._changes(customer_id, address)
            self._addresses[customer_id] = address
        self._take_time(name)
        return 200, {"customer_id": customer_id, "address": address}

    def charge(self, key: str, customer_id: str, amount: Plain) -> Answer:
        """Charge a fee, or answer that this key was charged."""
        with self._lock:
            self._calls[key] += 1
            if self._is_new(key):
                self._effects[key] += 1
                self._charges[key] = {
                    "charge": f"F-{len(self._charges) + 1}",
                    "customer_id": customer_id,
                    "amount": amount,
                }
            made = self._charges[key]
        self._take_time(key)
        return 200, made

    def send(self, reference: str, customer_id: str) -> Answer:
        """Send a letter: one more with every call."""
        with self._lock:
            self._calls[reference] += 1
            self._effects[reference] += 1
            made = {"letter": f"L-{sum(self._effects.values())}", "customer_id": customer_id, "reference": reference}
            self._letters.setdefault(reference, made)
        self._take_time(reference)
        return 200, made

    def letter(self, reference: str) -> Answer:
        """The first letter of a reference."""
        with self._lock:
            found = self._letters.get(reference)
        return (200, found) if found else (404, {"error": f"no letter {reference}"})

    def counts(self) -> Answer:
        """Calls and effects by name, and what is in flight now."""
        with self._lock:
            flying = sorted(name for name, number in self._in_flight.items() if number > 0)
            return 200, {"calls": dict(self._calls), "effects": dict(self._effects), "in_flight": flying}

    def release(self) -> Answer:
        """Answer every call that waits."""
        with self._lock:
            self._releases += 1
            self._lock.notify_all()
        return 200, {}

    def _changes(self, customer_id: str, address: str) -> bool:
        """Whether setting it changes anything."""
        return self._addresses.get(customer_id) != address

    def _is_new(self, key: str) -> bool:
        """Whether nothing was charged under this key."""
        return key not in self._charges

    def _take_time(self, name: str) -> None:
        with self._lock:
            latency = self.latency  # as it is now: a later change is for later calls
            self._in_flight[name] += 1
            releases = self._releases
        if self._received is not None:
            (self._received / name.replace("/", "_")).touch()
        with self._lock:
            self._lock.wait_for(lambda: self._releases != releases, latency)
            self._in_flight[name] -= 1


class Handler(BaseHTTPRequestHandler):
    """HTTP around an office."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    office: Office

    def do_GET(self) -> None:
        """Counts, or a letter."""
        if self.path == "/counts":
            return self._answer(*self.office.counts())
        if self.path.startswith("/letters/"):
            return self._answer(*self.office.letter(unquote(self.path.removeprefix("/letters/"))))
        return self._answer(404, {"error": "no such path"})

    def do_POST(self) -> None:
        """A charge, or a letter."""
        body = self._body()
        customer = body.get("customer_id")
        if self.path == "/charges" and isinstance(customer, str):
            key = (self.headers.get("Idempotency-Key") or "").strip()
            if key:
                return self._answer(*self.office.charge(key, customer, body.get("amount")))
        if self.path == "/letters" and isinstance(customer, str) and isinstance(body.get("reference"), str):
            return self._answer(*self.office.send(body["reference"], customer))
        return self._answer(400, {"error": "send customer_id, and the header Idempotency-Key or a reference"})

    def do_PUT(self) -> None:
        """An address, another latency, or the end of all waiting."""
        if self.path == "/release":
            return self._answer(*self.office.release())
        body, parts = self._body(), self.path.split("/")
        if len(parts) == 4 and parts[1::2] == ["customers", "address"] and isinstance(body.get("address"), str):
            return self._answer(*self.office.set_address(unquote(parts[2]), body["address"]))
        seconds = body.get("seconds")
        if self.path != "/latency" or isinstance(seconds, str) or seconds is None or not 0 <= seconds <= 60:
            return self._answer(400, {"error": "PUT an address, or /latency with seconds from 0 to 60"})
        self.office.latency = float(seconds)
        return self._answer(200, {"seconds": seconds})

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


class Server(ThreadingHTTPServer):
    """Callers of this server are killed for a living, so a connection that breaks is no news."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say something of other errors only."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(office: Office, port: int) -> ThreadingHTTPServer:
    """A server on the loopback address; port 0 takes any free one."""
    return Server(("127.0.0.1", port), type("OfficeHandler", (Handler,), {"office": office}))


def main(kind: type[Office] = Office) -> None:
    """Serve an office of that kind until killed."""
    parser = argparse.ArgumentParser(description="An office for changes of address.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until a call is answered")
    parser.add_argument("--received", type=Path, help="folder that gets a file for each call that arrived")
    wish = parser.parse_args()
    server = serve(kind(wish.latency, wish.received), wish.port)
    print(f"Listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
