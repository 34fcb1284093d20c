"""The outbox: entries wait here until an activity that carried them has returned.

Entries get a number when they are added. A parcel takes what is not confirmed, oldest first, as far as the engine's
limit for one input allows; confirming a parcel drops what it carried. A parcel whose activity failed is simply not
confirmed: its entries travel again, and are applied again, which changes nothing. Of calls that run side by side only
the first takes a parcel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from casework.projection.entries import Entry, to_plain
from casework.values import dumps


@dataclass(frozen=True, slots=True)
class Parcel:
    """What one activity carries: plain entries, and the number of the last one."""

    entries: tuple[dict[str, Any], ...]
    last: int


EMPTY = Parcel((), 0)
PARCEL_BYTES = 512 * 1024
"""Most that one activity carries, as JSON; the engine refuses inputs of 2 MB. One entry always travels."""


class Outbox:
    """Entries that no returned activity has carried yet, oldest first. `confirmed` numbers the last that is a row."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, dict[str, Any]]] = []
        self._last = 0
        self._travelling = 0
        self.confirmed = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def last(self) -> int:
        """Number of the newest entry; it is a row once `confirmed` has reached it."""
        return self._last

    @property
    def travelling(self) -> bool:
        """Whether a parcel is on its way."""
        return self._travelling > 0

    @property
    def size(self) -> int:
        """Characters of what is waiting, as JSON."""
        return sum(length for _, length, _ in self._waiting)

    def add(self, *entries: Entry) -> None:
        """Put entries at the end."""
        for entry in entries:
            self.take_over([to_plain(entry)])

    def unsent(self) -> tuple[dict[str, Any], ...]:
        """What is waiting, for an outbox that takes over."""
        return tuple(plain for _, _, plain in self._waiting)

    def take_over(self, unsent: Iterable[Mapping[str, Any]]) -> None:
        """Put what another outbox had not sent at the end."""
        for plain in unsent:
            self._last += 1
            self._waiting.append((self._last, len(dumps(plain)), dict(plain)))

    def drop(self) -> int:
        """Give up what is waiting and cannot be written; how many entries that were. `dropped` numbers the last."""
        count = len(self._waiting)
        self._waiting.clear()
        self.dropped = self._last
        return count

    def take(self) -> Parcel:
        """The oldest that fit, or nothing while an earlier parcel is still on its way with the same entries."""
        if not self._waiting or self.travelling:
            return EMPTY
        self._travelling += 1
        taken: list[tuple[int, dict[str, Any]]] = []
        size = 0
        for number, length, data in self._waiting:
            size += length
            if taken and size > PARCEL_BYTES:
                break
            taken.append((number, data))
        return Parcel(tuple(data for _, data in taken), taken[-1][0])

    def confirm(self, parcel: Parcel) -> None:
        """The activity with `parcel` returned: its entries are rows now."""
        self._land(parcel)
        self.confirmed = max(self.confirmed, parcel.last)
        self._waiting = [waiting for waiting in self._waiting if waiting[0] > parcel.last]

    def give_back(self, parcel: Parcel) -> None:
        """The activity with `parcel` failed: its entries stay and travel with the next."""
        self._land(parcel)

    def _land(self, parcel: Parcel) -> None:
        if parcel.last:
            self._travelling -= 1
