"""The destination as a process of its own, and what it has counted."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx2

from casework.children.server import launcher
from casework.drills.promises import BrokenOffError
from casework.rehearsal import Destination
from casework.values import dumps, loads

GRACE_S = 3.0
READY_S = 20.0


@dataclass(frozen=True)
class Counts:
    """What the destination saw: calls and effects by name, the names in flight, and when each call arrived."""

    calls: dict[str, int]
    effects: dict[str, int]
    in_flight: tuple[str, ...]
    arrivals: Mapping[str, Sequence[float]] | None = None
    """In seconds since the epoch, by name; None where the destination does not tell."""

    @property
    def duplicates(self) -> int:
        """Effects beyond the first of each name."""
        return sum(max(0, number - 1) for number in self.effects.values())


class DestinationProcess:
    """The server of a `Destination`: started, asked, stopped."""

    def __init__(self, destination: Destination, received: Path, latency: float) -> None:
        self._what = destination
        self._words = [*destination.command, "--port", "0", "--latency", str(latency), "--received", str(received)]
        self._child: subprocess.Popen[str] | None = None
        self.url = ""

    async def start(self) -> None:
        """Start it from the main thread and learn its address.

        Raises:
            BrokenOffError: it does not say where it listens.
        """
        words = [*launcher(death_signal=signal.SIGTERM), *self._words]
        self._child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220, S603  # returns at once
        out = self._child.stdout
        assert out is not None
        line = await asyncio.wait_for(asyncio.to_thread(_first_line, out), READY_S)
        if not line.startswith("Listening on "):
            raise BrokenOffError(f"The destination {self._what.command} does not say where it listens: {line!r}")
        self.url = line.removeprefix("Listening on ").strip()

    async def counts(self) -> Counts:
        """What it has counted so far.

        Raises:
            BrokenOffError: it does not answer, or its times of arrival are not one for each call.
        """
        return counts_of(await self._ask("GET", "/counts"))

    async def slow_down(self, seconds: float) -> None:
        """Answer later calls after so many seconds."""
        await self._ask("PUT", "/latency", dumps({"seconds": seconds}))

    async def release(self) -> None:
        """Answer every call in flight now."""
        await self._ask("PUT", "/release")

    def stop(self) -> None:
        """End it. Harmless when it does not run."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        if self._child.stdout:
            self._child.stdout.close()
        self._child = None

    async def _ask(self, method: str, path: str, content: str | None = None) -> Any:
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
                answer = await client.request(method, f"{self.url}{path}", content=content)
                answer.raise_for_status()
                return loads(answer.content)
        except httpx2.HTTPError as error:
            raise BrokenOffError(f"The destination did not answer {method} {path}: {error!r}") from error


def counts_of(found: Mapping[str, Any]) -> Counts:
    """The counts in an answer to `GET /counts`.

    Raises:
        BrokenOffError: its times of arrival are not one for each call, so that a call could hide.
    """
    calls, told = found["calls"], found.get("arrivals")
    arrivals = None if told is None else {name: sorted(map(float, times)) for name, times in told.items()}
    if arrivals is not None and _without_zeros(
        {name: len(times) for name, times in arrivals.items()}
    ) != _without_zeros(calls):
        raise BrokenOffError("The destination does not tell a time of arrival for each call that it counts.")
    return Counts(calls, found["effects"], tuple(found["in_flight"]), arrivals)


def _without_zeros(counted: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in counted.items() if number}


def _first_line(out: IO[str]) -> str:
    return out.readline()
