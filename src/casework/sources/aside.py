"""What failed is left alone for a while: it neither fills each poll, nor is it told at each one."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

MOST = 10_000
"""Most keys that are remembered; then those that were set aside first are forgotten, and tried earlier."""


@dataclass
class SetAside:
    """Keys that failed, and until when they wait: `first_s` seconds, then twice as long each time, up to `longest_s`.

    In memory: a worker that starts tries all anew. `clock` counts seconds from anywhere.
    """

    first_s: float = 300.0
    longest_s: float = 6 * 3600.0
    clock: Callable[[], float] = time.monotonic
    _until: dict[Hashable, tuple[float, float]] = field(default_factory=dict)

    def put(self, key: Hashable) -> None:
        """`key` failed now."""
        _, pause = self._until.pop(key, (0.0, self.first_s / 2))
        pause = min(pause * 2, self.longest_s)
        self._until[key] = (self.clock() + pause, pause)
        if len(self._until) > MOST:
            del self._until[next(iter(self._until))]

    def waits(self, key: Hashable) -> bool:
        """Whether `key` is to be left alone now."""
        until, _ = self._until.get(key, (float("-inf"), 0.0))
        return self.clock() < until

    def forget(self, key: Hashable) -> None:
        """`key` went well, or is not there any more."""
        self._until.pop(key, None)
