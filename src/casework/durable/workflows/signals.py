"""Signals that reach a run: kept by name until a WAIT node takes them, also those that come before it is reached.

Each is taken once, the oldest of its name first. What is kept is bounded: one beyond is refused, and the run's events
say so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from casework.durable.contracts import Signal
from casework.durable.workflows.journal import Journal
from casework.values import Plain, dumps

MOST_KEPT = 200
KEPT_BYTES = 256 * 1024
"""Most payloads that wait to be taken, and how long they may be together, as JSON."""
MOST_KNOWN = 2000
"""Ids of signals that are remembered, the newest; an older one that comes again is another signal."""


class Signals:
    """The signals of one run."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: dict[str, deque[Plain]] = {}
        self._known: dict[str, None] = {}

    def receive(self, signal: Signal) -> None:
        """Keep a signal; the same one again changes nothing."""
        if not _well_formed(signal):
            self._journal.log("", "WARNING", f"a message was no signal and is ignored: {signal!r:.200}")
            return
        if signal.signal_id in self._known:
            return
        self._know(signal.signal_id)
        why = self._no_room(signal)
        data = {"name": signal.name, "by": signal.by}
        if why is not None:
            self._journal.event("", f"agent.signal_refused:{signal.signal_id}", {**data, "why": why})
            return
        self._kept.setdefault(signal.name, deque()).append(signal.payload)
        self._journal.event("", f"agent.signal_received:{signal.signal_id}", data)

    def has(self, name: str | None) -> bool:
        """Whether a signal of that name can be taken."""
        return name is not None and bool(self._kept.get(name))

    def take(self, name: str) -> Plain:
        """The payload of the oldest of that name; nobody else gets it."""
        waiting = self._kept[name]
        payload = waiting.popleft()
        if not waiting:
            del self._kept[name]
        return payload

    def carried(self) -> dict[str, Any]:
        """All of it, for the next part of the run."""
        return {"kept": {name: list(waiting) for name, waiting in self._kept.items()}, "known": list(self._known)}

    def take_over(self, carried: Mapping[str, Any]) -> None:
        """Go on from what `carried` says; parts of older releases carried none."""
        self._kept = {name: deque(waiting) for name, waiting in carried.get("kept", {}).items()}
        self._known = dict.fromkeys(carried.get("known", ()))

    def _know(self, signal_id: str) -> None:
        self._known[signal_id] = None
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _no_room(self, signal: Signal) -> str | None:
        waiting = [payload for each in self._kept.values() for payload in each]
        if len(waiting) >= MOST_KEPT:
            return f"{MOST_KEPT} signals wait already, and no node has taken them"
        if sum(len(dumps(each)) for each in [*waiting, signal.payload]) > KEPT_BYTES:
            return f"the payloads of signals that wait may have {KEPT_BYTES:,} bytes together"
        return None


def _well_formed(signal: Any) -> bool:
    return isinstance(signal, Signal) and all(
        isinstance(text, str) and text for text in (signal.name, signal.signal_id, signal.by)
    )
