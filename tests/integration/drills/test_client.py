"""The careful client of a storm over real HTTP: what got no answer is sent again, the same to the letter."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from casework.drills.client import Client
from casework.drills.promises import BrokenOffError

SEEN: list[tuple[str, bytes]] = []
PLANNED: list[int] = []
"""Statuses of the next answers; 0 cuts the connection without one."""


class Wayward(BaseHTTPRequestHandler):
    """Answers as planned, then 202."""

    def do_POST(self) -> None:
        """Note the request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        SEEN.append((self.headers["Idempotency-Key"], body))
        status = PLANNED.pop(0) if PLANNED else 202
        if status == 0:
            self.connection.close()
            return
        content = b'{"run_id": "r-1"}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """A server that answers as planned."""
    SEEN.clear()
    PLANNED.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Wayward)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_what_got_no_answer_is_sent_again_under_the_same_key(url: str) -> None:
    """DA-8. A cut connection and a 503 are both asked again; every answer is counted."""
    PLANNED.extend([0, 503])
    async with Client(url, "token", patience_s=30) as api:
        assert await api.submit("w", {"a": 1}, "key-1") == "r-1"
        assert (api.unanswered, dict(api.answers)) == (1, {503: 1, 202: 1})
    assert len(SEEN) == 3
    assert len(set(SEEN)) == 1


async def test_a_refusal_is_final(url: str) -> None:
    """Asking again would not mend it."""
    PLANNED.extend([422])
    async with Client(url, "token", patience_s=30) as api:
        with pytest.raises(BrokenOffError, match="422"):
            await api.submit("w", {}, "key-1")
    assert len(SEEN) == 1


async def test_without_patience_nothing_is_sent_twice(url: str) -> None:
    """As the other drills want it."""
    PLANNED.extend([503])
    async with Client(url, "token") as api:
        with pytest.raises(BrokenOffError, match="503"):
            await api.submit("w", {}, "key-1")
    assert len(SEEN) == 1
