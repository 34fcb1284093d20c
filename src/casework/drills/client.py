"""The HTTP API as a drill uses it: the status of every answer is looked at, so nothing is raised for a refusal."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx2

from casework.drills.promises import BrokenOffError
from casework.values import Plain, dumps, loads

LOOK_EVERY_S = 0.2
PATIENCE_S = 60.0
"""How long a state is waited for, in seconds."""
AGAIN_S = 0.5
"""Pause before a request is sent again, in seconds."""
BUSY = 503
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class Client:
    """The API at one address, for one token.

    With `patience_s` a request that gets no answer, or 503, is sent again for so many seconds, the same to the letter:
    starts carry their idempotency key and decisions are known by their content, so nothing is done twice.
    """

    def __init__(self, url: str, token: str, patience_s: float = 0.0) -> None:
        self._patience_s = patience_s
        self.answers: Counter[int] = Counter()
        """How often each status was answered."""
        self.unanswered = 0
        """Requests that got no answer at all."""
        # This machine's own server: no proxy of the environment stands between.
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=40, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def submit(self, workflow: str, case: Mapping[str, Any], key: str) -> str:
        """Start a run under an idempotency key; its id.

        Raises:
            BrokenOffError: it was refused.
        """
        body = dumps({"workflow": workflow, "input": dict(case)})
        answer = await self._ask("POST", "/v1/runs", content=body, headers={"Idempotency-Key": key})
        if not answer.is_success:
            raise BrokenOffError(f"The API refused the case {dict(case)}: {answer.status_code} {answer.text[:500]}")
        return str(loads(answer.content)["run_id"])

    async def run(self, run_id: str) -> dict[str, Any]:
        """The run's detail."""
        return await self._get(f"/v1/runs/{run_id}")

    async def events(self, run_id: str, after: int = 0) -> list[dict[str, Any]]:
        """The run's events after a number."""
        return list((await self._get(f"/v1/runs/{run_id}/events?after={after}"))["items"])

    async def review(self, review_id: str) -> dict[str, Any]:
        """A review with every decision it was given."""
        return await self._get(f"/v1/reviews/{review_id}")

    async def decide(
        self, review_id: str, command: str, reason: str, *, wait_s: float | None = 15
    ) -> tuple[int, dict[str, Any]]:
        """Answer a review; with `wait_s` None without waiting for the run's word. Status and body."""
        query = "" if wait_s is None else f"?wait=accepted&timeout={wait_s:g}"
        body = dumps({"command": command, "reason": reason})
        answer = await self._ask("POST", f"/v1/reviews/{review_id}/decisions{query}", content=body)
        return answer.status_code, loads(answer.content)

    async def until(
        self,
        run_id: str,
        holds: Callable[[dict[str, Any]], bool],
        what: str,
        patience_s: float = PATIENCE_S,
        every_s: float = LOOK_EVERY_S,
    ) -> dict[str, Any]:
        """The run's detail as soon as it `holds`, looked at every so many seconds.

        Raises:
            BrokenOffError: it did not in time, or the run ended otherwise.
        """
        deadline = time.monotonic() + patience_s
        while True:
            found = await self.run(run_id)
            if holds(found):
                return found
            if found["status"] in ENDED or time.monotonic() > deadline:
                raise BrokenOffError(_instead(found, what))
            await asyncio.sleep(every_s)

    async def until_review(
        self, run_id: str, turn: int = 1, patience_s: float = PATIENCE_S, every_s: float = LOOK_EVERY_S
    ) -> dict[str, Any]:
        """The run's detail when it awaits the review of `turn`. Raises as `until`."""
        return await self.until(
            run_id,
            lambda run: run["status"] == "AWAITING_REVIEW" and run["review"]["turn"] == turn,
            f"await the review of turn {turn}",
            patience_s,
            every_s,
        )

    async def until_end(self, run_id: str) -> dict[str, Any]:
        """The run's detail when it has ended. Raises as `until`."""
        return await self.until(run_id, lambda run: run["status"] in ENDED, "end")

    async def _ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                answer = await self._http.request(method, path, **options)
            except httpx2.HTTPError as error:
                self.unanswered += 1
                if time.monotonic() >= deadline:
                    raise BrokenOffError(
                        f"The API did not answer {method} {path}: {type(error).__name__} {error}"
                    ) from error
            else:
                self.answers[answer.status_code] += 1
                if answer.status_code != BUSY or time.monotonic() >= deadline:
                    return answer
            await asyncio.sleep(AGAIN_S)

    async def _get(self, path: str) -> dict[str, Any]:
        answer = await self._ask("GET", path)
        if not answer.is_success:
            raise BrokenOffError(f"GET {path} answered {answer.status_code}: {answer.text[:500]}")
        found: Plain = loads(answer.content)
        assert isinstance(found, dict)
        return found


def _instead(run: Mapping[str, Any], what: str) -> str:
    steps = ", ".join(f"{step['path']} {step['state']} (attempt {step['attempt']})" for step in run["steps"][-4:])
    failure = f"; failure: {run['failure']}" if run.get("failure") else ""
    return f"Run {run['run_id']} did not {what}: it is {run['status']}, turn {run['turn']}; {steps}{failure}"
