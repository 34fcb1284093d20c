"""The destination of the process drill: an effect for each key, however often it is called with it."""

from __future__ import annotations

from collections.abc import Mapping

from casework.testing.destination import NOT_FOUND, Answer, CountingHandler, CountingServer, arguments, run, serve
from casework.values import Plain


class EffectsServer(CountingServer):
    """Counts calls and effects by key."""

    def act(self, key: str) -> Answer:
        """The first call with a key has an effect, and all are answered alike."""
        with self.lock:
            self.called(key)
            self.effects[key] = 1
        self.take_time(key)
        return 200, {}


class EffectsHandler(CountingHandler[EffectsServer]):
    """`POST /effects` with an Idempotency-Key."""

    def post(self, path: str, body: Mapping[str, Plain]) -> Answer:  # noqa: ARG002  # the key says it
        """Act once for each key."""
        return self.served.act(self.key) if path == "/effects" and self.key else NOT_FOUND


if __name__ == "__main__":
    given = arguments(__doc__).parse_args()
    run(serve(EffectsServer(given.latency, given.received), EffectsHandler, given.port))
