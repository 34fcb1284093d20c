"""The API as the play uses it: starts processes, looks at Transactions and reviews, decides as a scripted reviewer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from casework.drills.promises import BrokenOffError
from casework.values import dumps, loads

LOOK_EVERY_S = 0.3
PATIENCE_S = 150.0
"""How long the mails may take all together, in seconds."""
ENDED = frozenset({"COMPLETED", "ABORTED"})
Row = dict[str, Any]


class Desk:
    """A client of the API. Close it when done."""

    def __init__(self, url: str, token: str) -> None:
        # This machine's own server: no proxy of the environment stands between.
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=40, trust_env=False)

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def get(self, path: str) -> Row:
        """What is there.

        Raises:
            BrokenOffError: the API refused.
        """
        return self._told(path, await self._http.get(path))

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Row:
        """Send it. Raises as `get`."""
        return self._told(path, await self._http.post(path, content=dumps(dict(body or {}))))

    async def transactions(self) -> list[Row]:
        """All Transactions, the oldest first."""
        return list(reversed((await self.get("/v1/transactions?limit=200"))["items"]))

    async def answer(self, words: Callable[[Row], str]) -> list[tuple[Row, str]]:
        """Decide every review that waits, each by what `words` says to it."""
        given = []
        for review in (await self.get("/v1/reviews?limit=100"))["items"]:
            word = words(review)
            body = {"command": word, "reason": "As the scripted reviewer has it."}
            await self.post(f"/v1/reviews/{review['review_id']}/decisions?wait=accepted&timeout=15", body)
            given.append((review, word))
        return given

    @staticmethod
    def _told(path: str, answer: httpx2.Response) -> Row:
        if not answer.is_success:
            raise BrokenOffError(f"{path} answered {answer.status_code}: {answer.text[:500]}")
        found = loads(answer.content)
        assert isinstance(found, dict)
        return found


async def until(holds: Callable[[], Any], what: str) -> None:
    """Wait until the awaited `holds()` is true.

    Raises:
        BrokenOffError: it was not in time.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not await holds():
        if time.monotonic() > deadline:
            raise BrokenOffError(f"It was waited for {PATIENCE_S:.0f} s in vain that {what}.")
        await asyncio.sleep(LOOK_EVERY_S)
