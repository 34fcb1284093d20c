"""The office as a server of its own: it keeps addresses, takes fees and sends letters, and counts, for drills.

    python -m casework.examples.repeat_safety.office --port 0 --latency 0.2 --received FOLDER

`PUT /customers/{id}/address` sets an address; it is an effect when the address changes. `POST /charges` with the header
`Idempotency-Key` charges once for each key. `POST /letters` sends a letter, each time; `GET /letters/{reference}` finds
one. What they do is done when they arrive; the answer goes out `latency` seconds later. `GET /counts`, `PUT /latency`
and `PUT /release` are those of a `casework.rehearsal.Destination`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from casework.testing.destination import NOT_FOUND, Answer, CountingHandler, CountingServer, arguments, run, serve
from casework.values import Plain


class Office(CountingServer):
    """What the office knows and does."""

    def __init__(self, latency: float = 0.0, received: Path | None = None) -> None:
        super().__init__(latency, received)
        self._addresses: dict[str, str] = {}
        self._charges: dict[str, Plain] = {}
        self._letters: dict[str, Plain] = {}

    def set_address(self, customer_id: str, address: str) -> Answer:
        """Put an address on record."""
        name = f"set_address:{customer_id}"
        with self.lock:
            self.called(name)
            self.effects[name] += self._changes(customer_id, address)
            self._addresses[customer_id] = address
        self.take_time(name)
        return 200, {"customer_id": customer_id, "address": address}

    def charge(self, key: str, customer_id: str, amount: Plain) -> Answer:
        """Charge a fee, or answer that this key was charged."""
        with self.lock:
            self.called(key)
            if self._is_new(key):
                self.effects[key] += 1
                self._charges[key] = {
                    "charge": f"F-{len(self._charges) + 1}",
                    "customer_id": customer_id,
                    "amount": amount,
                }
            made = self._charges[key]
        self.take_time(key)
        return 200, made

    def send(self, reference: str, customer_id: str) -> Answer:
        """Send a letter: one more with every call."""
        with self.lock:
            self.called(reference)
            self.effects[reference] += 1
            made = {"letter": f"L-{sum(self.effects.values())}", "customer_id": customer_id, "reference": reference}
            self._letters.setdefault(reference, made)
        self.take_time(reference)
        return 200, made

    def letter(self, reference: str) -> Answer:
        """The first letter of a reference."""
        with self.lock:
            found = self._letters.get(reference)
        return (200, found) if found else (404, {"error": f"no letter {reference}"})

    def _changes(self, customer_id: str, address: str) -> bool:
        """Whether setting it changes anything."""
        return self._addresses.get(customer_id) != address

    def _is_new(self, key: str) -> bool:
        """Whether nothing was charged under this key."""
        return key not in self._charges


class Handler(CountingHandler[Office]):
    """HTTP around an office."""

    def get(self, path: str) -> Answer:
        """A letter."""
        if path.startswith("/letters/"):
            return self.served.letter(unquote(path.removeprefix("/letters/")))
        return NOT_FOUND

    def post(self, path: str, body: Mapping[str, Plain]) -> Answer:
        """A charge, or a letter."""
        customer = body.get("customer_id")
        if path == "/charges" and isinstance(customer, str) and self.key:
            return self.served.charge(self.key, customer, body.get("amount"))
        if path == "/letters" and isinstance(customer, str) and isinstance(body.get("reference"), str):
            return self.served.send(body["reference"], customer)
        return 400, {"error": "send customer_id, and the header Idempotency-Key or a reference"}

    def put(self, path: str, body: Mapping[str, Plain]) -> Answer:
        """An address."""
        parts = path.split("/")
        if len(parts) == 4 and parts[1::2] == ["customers", "address"] and isinstance(body.get("address"), str):
            return self.served.set_address(unquote(parts[2]), body["address"])
        return 400, {"error": "PUT an address"}


def main(kind: type[Office] = Office) -> None:
    """Serve an office of that kind until killed."""
    wish = arguments("An office for changes of address.").parse_args()
    run(serve(kind(wish.latency, wish.received), Handler, wish.port))


if __name__ == "__main__":
    main()
